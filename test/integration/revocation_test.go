package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/test/world"
)

const (
	// punctual is how late an agent may delete a Secret; after that, an alert fires.
	punctual = 15 * time.Second
	// remembered is how long an API server may go on accepting a token whose Secret
	// is gone: ten seconds by its cache, and some to spare for a busy machine.
	remembered = 45 * time.Second
)

// revocable makes a policy's credentials revocable, and lets them be short.
func revocable(spec *registryv1alpha1.PlacementPolicySpec) {
	spec.Credential = registryv1alpha1.CredentialScope{Namespace: "revocable", ServiceAccountName: "deployer", Revocable: true}
	spec.TokenTTL = &registryv1alpha1.TokenTTL{Default: &metav1.Duration{Duration: 2 * time.Minute}, Max: &metav1.Duration{Duration: 5 * time.Minute}}
}

// revoke ends a credential.
func revoke(ctx context.Context, client versioned.Interface, cell string, c *cellcastv1alpha1.Credential) (cellcastv1alpha1.RevocationResult, error) {
	status, err := revoked(ctx, client, cell, c)
	return status.Result, err
}

func revoked(ctx context.Context, client versioned.Interface, cell string, c *cellcastv1alpha1.Credential) (cellcastv1alpha1.CellRevocationStatus, error) {
	answer := &cellcastv1alpha1.CellRevocation{}
	err := client.CellcastV1alpha1().RESTClient().Post().Resource("cells").Name(cell).SubResource("revocation").
		Body(&cellcastv1alpha1.CellRevocation{Spec: cellcastv1alpha1.CellRevocationSpec{Namespace: c.Namespace, RevocationNonce: c.RevocationNonce}}).
		MaxRetries(0).Do(ctx).Into(answer)
	return answer.Status, err
}

// boundTo is what a record of the trail says that a credential was bound to.
func boundTo(t *testing.T, event, requestID string) string {
	t.Helper()
	for line := range strings.Lines(read(t, hub.Hub.Server.LogFile())) {
		var record struct {
			Event     string
			RequestID string `json:"request_id"`
			BoundTo   string `json:"bound_to"`
		}
		if json.Unmarshal([]byte(line), &record) == nil && record.Event == event && record.RequestID == requestID {
			return record.BoundTo
		}
	}
	return ""
}

// secretOf is what the cell's administrator is told who looks for a Secret of
// revocable credentials.
func secretOf(ctx context.Context, cell *world.Cell, name string) error {
	admin, err := kubernetes.NewForConfig(cell.Admin.Config())
	if err != nil {
		return err
	}
	_, err = admin.CoreV1().Secrets("revocable").Get(ctx, name, metav1.GetOptions{})
	return err
}

// refusedBy waits until the cell refuses the token, and returns how long that
// took.
func refusedBy(t *testing.T, cell *world.Cell, token string, within time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	client := as(t, cell, token)
	for time.Since(began) < within+30*time.Second {
		if _, err := whoAmI(t.Context(), client); apierrors.IsUnauthorized(err) {
			took := time.Since(began)
			if took > within {
				t.Errorf("the cell refuses the token after %s, want %s at most", took, within)
			}
			return took
		}
		time.Sleep(250 * time.Millisecond) // a poll
	}
	t.Fatalf("the cell still believes the token after %s", time.Since(began))
	return 0
}

func TestTheCallerEndsItsCredentialAndNobodyElseCan(t *testing.T) {
	require(t)
	clients := doors(t, revocable)
	other := pipeline(t, unique(t)+"-other")
	policy(t, unique(t)+"-other", revocable)
	for door, client := range clients {
		t.Run(door, func(t *testing.T) {
			answer, err := place(t.Context(), client, ask("payments/api"))
			if err != nil {
				t.Fatal(err)
			}
			cell, credential := hub.Cell(answer.Status.Cell.Name), answer.Status.Credential
			if credential.RevokesAt == nil || credential.ExpirationTimestamp.Sub(credential.RevokesAt.Time) < 7*time.Minute {
				t.Fatalf("it revokes at %v and expires at %s", credential.RevokesAt, credential.ExpirationTimestamp)
			}
			if who, err := whoAmI(t.Context(), as(t, cell, credential.Token)); err != nil || who != "system:serviceaccount:revocable:deployer" {
				t.Fatalf("the cell knows %q: %v", who, err)
			}
			minted := boundTo(t, "mint", answer.Status.RequestID)
			if err := secretOf(t.Context(), cell, minted); err != nil {
				t.Fatalf("the trail says that it's bound to %q: %v", minted, err)
			}

			if result, err := revoke(t.Context(), other, cell.Name, credential); err != nil || result != cellcastv1alpha1.RevocationNotFound {
				t.Errorf("another caller gets %q: %v", result, err)
			}
			if _, err := whoAmI(t.Context(), as(t, cell, credential.Token)); err != nil {
				t.Errorf("another caller ended it: %v", err)
			}
			revocation, err := revoked(t.Context(), client, cell.Name, credential)
			if err != nil || revocation.Result != cellcastv1alpha1.RevocationRevoked {
				t.Fatalf("its caller gets %q: %v", revocation.Result, err)
			}
			if err := secretOf(t.Context(), cell, minted); !apierrors.IsNotFound(err) {
				t.Errorf("it's revoked, and its Secret isn't gone: %v", err)
			}
			t.Logf("refused %s after the revocation", refusedBy(t, cell, credential.Token, remembered))
			if result, err := revoke(t.Context(), client, cell.Name, credential); err != nil || result != cellcastv1alpha1.RevocationNotFound {
				t.Errorf("the second time its caller gets %q: %v", result, err)
			}
			if revoked := boundTo(t, "revocation", revocation.RequestID); minted != revoked {
				t.Errorf("the trail says that it was bound to %q, and that %q was revoked", minted, revoked)
			}
		})
	}
}

// Whoever may no longer deploy must still be able to hand back.
func TestACredentialCanBeRevokedWhenThePolicyIsGone(t *testing.T) {
	require(t)
	client, name := pipeline(t, unique(t)), unique(t)
	var answer *cellcastv1alpha1.Placement
	t.Run("placed under a policy that ends with this", func(t *testing.T) {
		policy(t, name, revocable)
		var err error
		if answer, err = place(t.Context(), client, ask("payments/api")); err != nil {
			t.Fatal(err)
		}
	})
	eventually(t, "the hub knows that the policy is gone", func(ctx context.Context) error {
		if _, err := place(ctx, client, ask("payments/api")); err == nil {
			return errors.New("it places still")
		}
		return nil
	})
	if result, err := revoke(t.Context(), client, answer.Status.Cell.Name, answer.Status.Credential); err != nil || result != cellcastv1alpha1.RevocationRevoked {
		t.Errorf("got %q: %v", result, err)
	}
	if _, err := revoke(t.Context(), client, answer.Status.Cell.Name, answer.Status.Credential); !apierrors.IsNotFound(err) {
		t.Errorf("the second time, when it reaches no cell any more: %v", err)
	}
}

func TestARevocationTellsNothingOfACellThatTheCallerMayNotReach(t *testing.T) {
	require(t)
	client := doors(t, revocable)["direct"]
	nonce := &cellcastv1alpha1.Credential{Namespace: "revocable", RevocationNonce: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
	_, foreign := revoke(t.Context(), client, "dev-eu", nonce)
	_, unknown := revoke(t.Context(), client, "dev-xx", nonce)
	if !apierrors.IsNotFound(foreign) || !apierrors.IsNotFound(unknown) {
		t.Errorf("got %v and %v", foreign, unknown)
	}
	_, err := revoke(t.Context(), client, "prod-eu", &cellcastv1alpha1.Credential{Namespace: "revocable", RevocationNonce: "guess"})
	refused(t, err, refusal.InvalidRequest, 400, "spec.revocationNonce")
}

// The agent ends it, though the hub is restarted meanwhile and knows nothing of
// it any more.
func TestAPlacementOfTwoMinutesIsDeadAfterTwoMinutes(t *testing.T) {
	require(t)
	if testing.Short() {
		t.Skip("it takes two minutes")
	}
	t.Parallel() // when the others have ended, which need the hub
	answer, err := place(t.Context(), doors(t, revocable)["direct"], ask("payments/api"))
	if err != nil {
		t.Fatal(err)
	}
	cell, credential := hub.Cell(answer.Status.Cell.Name), answer.Status.Credential
	secret := boundTo(t, "mint", answer.Status.RequestID)
	if err := hub.Hub.Server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	const before = 10 * time.Second
	time.Sleep(time.Until(credential.RevokesAt.Add(-before)))
	if _, err := whoAmI(t.Context(), as(t, cell, credential.Token)); err != nil {
		t.Errorf("%s before its end the cell says %v", before, err)
	}
	eventually(t, "the agent deletes the Secret", func(ctx context.Context) error {
		err := secretOf(ctx, cell, secret)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("looking for %q: %w", secret, err)
	})
	deleted := time.Since(credential.RevokesAt.Time)
	if deleted < -time.Second || deleted > punctual { // times in an answer are whole seconds
		t.Errorf("its Secret was deleted %s after it was due, want 0s to %s", deleted, punctual)
	}
	t.Logf("deleted %s after it was due, refused %s later", deleted, refusedBy(t, cell, credential.Token, remembered))
}

// What the hub may do for revocable credentials is bounded on the cell, where a
// compromised hub can't change it.
func TestTheCellBoundsWhatTheHubMayMakeForARevocableCredential(t *testing.T) {
	require(t)
	cell := hub.Cell("prod-eu")
	token, err := hub.Hub.Token(t.Context(), world.Namespace, world.HubServiceAccount, 10*time.Minute, cell.Audience)
	if err != nil {
		t.Fatal(err)
	}
	asHub := as(t, cell, token)
	good := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name:   fmt.Sprintf("cellcast-%064x", time.Now().UnixNano()),
				Labels: map[string]string{"cellcast.io/revoke-after-seconds": "60"},
			},
			Type: corev1.SecretTypeOpaque,
		}
	}
	for sentence, tt := range map[string]struct {
		namespace string
		change    func(*corev1.Secret)
	}{
		"a ServiceAccount's token, which would live for ever": {"revocable", func(s *corev1.Secret) {
			s.Type = corev1.SecretTypeServiceAccountToken
			s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "deployer"}
		}},
		"data in it":            {"revocable", func(s *corev1.Secret) { s.Data = map[string][]byte{"a": []byte("b")} }},
		"no label":              {"revocable", func(s *corev1.Secret) { s.Labels = nil }},
		"a time that isn't one": {"revocable", func(s *corev1.Secret) { s.Labels["cellcast.io/revoke-after-seconds"] = "soon" }},
		"a time without end":    {"revocable", func(s *corev1.Secret) { s.Labels["cellcast.io/revoke-after-seconds"] = "99999999" }},
		"a finalizer":           {"revocable", func(s *corev1.Secret) { s.Finalizers = []string{"example.com/keep"} }},
		"another name":          {"revocable", func(s *corev1.Secret) { s.Name = "registry-password" }},
		"another namespace":     {"payments", func(*corev1.Secret) {}},
	} {
		t.Run(sentence, func(t *testing.T) {
			secret := good()
			tt.change(secret)
			if _, err := asHub.CoreV1().Secrets(tt.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	secret, err := asHub.CoreV1().Secrets("revocable").Create(t.Context(), good(), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("an empty, labelled Secret: %v", err)
	}
	if _, err := asHub.CoreV1().Secrets("revocable").Get(t.Context(), secret.Name, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the hub may read Secrets: %v", err)
	}
	if err := asHub.CoreV1().Secrets("revocable").Delete(t.Context(), secret.Name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("the hub can't delete it: %v", err)
	}
}

// A token of a revocable ServiceAccount that nothing ends must not be had.
func TestARevocableServiceAccountHasNoUnboundToken(t *testing.T) {
	require(t)
	answer, err := place(t.Context(), doors(t, func(spec *registryv1alpha1.PlacementPolicySpec) {
		revocable(spec)
		spec.Credential.Revocable, spec.TokenTTL = false, nil
	})["direct"], ask("payments/api"))
	if err == nil {
		t.Fatalf("it was issued, until %s", answer.Status.Credential.ExpirationTimestamp)
	}
	refused(t, err, refusal.MintFailed, 503, "may not create serviceaccounts/token")
}

// A dead agent ends nothing, so nothing is issued that it would have to end.
func TestNothingRevocableIsIssuedWhereNoAgentEndsIt(t *testing.T) {
	require(t)
	client := doors(t, func(spec *registryv1alpha1.PlacementPolicySpec) {
		revocable(spec)
		spec.Credential.Namespace = "payments" // in which no agent ends credentials
	})["direct"]
	_, err := place(t.Context(), client, ask("payments/api"))
	refused(t, err, refusal.MintFailed, 503, "--revocable-namespaces=payments")
}
