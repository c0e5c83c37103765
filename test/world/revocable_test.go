package world_test

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"cellcast.io/cellcast/pkg/agent/revoker"
	"cellcast.io/cellcast/pkg/cli/registration"
	"cellcast.io/cellcast/pkg/revocation"
	"cellcast.io/cellcast/test/world"
	"cellcast.io/cellcast/test/world/worldtest"
)

// What `cellcast register cell --revocable` prints is tried on a real API
// server, as the hub, as the agent and as an administrator.
func TestRevocableNamespace(t *testing.T) {
	w := worldtest.Start(t, world.Options{Cells: []world.CellOptions{{Name: "a"}}})
	ctx, a := t.Context(), w.Cell("a")
	admin := kubernetes.NewForConfigOrDie(a.Admin.Config())

	// No policy is there yet, so that a time of two seconds is possible.
	if err := a.EnsureServiceAccount(ctx, "ci", "deployer"); err != nil {
		t.Fatal(err)
	}
	short := create(t, admin, bindable("short", "2"))
	if err := a.InstallAccess(ctx, world.Access{Mint: []string{"ci/deployer", "payments/deployer"}, Revocable: []string{"ci"}, RevocableQuota: 2}); err != nil {
		t.Fatal(err)
	}
	user, err := a.User(world.HubUser)
	if err != nil {
		t.Fatal(err)
	}
	hub := kubernetes.NewForConfigOrDie(user.Config())
	poll(t, "the policies hold", func() bool {
		_, secret := hub.CoreV1().Secrets("ci").Create(ctx, bindable("try", "59"), dryRun)
		_, abroad := mistaken(t, a).CoreV1().Secrets("payments").Create(ctx, with(elsewhere), dryRun)
		_, token := hub.CoreV1().ServiceAccounts("ci").CreateToken(ctx, "deployer", tokenFor(nil), metav1.CreateOptions{})
		return apierrors.IsForbidden(secret) && apierrors.IsForbidden(abroad) && apierrors.IsForbidden(token)
	})

	t.Run("the hub makes nothing but the Secrets of revocable credentials", func(t *testing.T) {
		for name, test := range map[string]struct {
			client kubernetes.Interface
			secret *corev1.Secret
			want   string // in the refusal; empty where it's allowed
		}{
			"one as it should be":            {hub, bindable("good", "60"), ""},
			"one as long as a token may be":  {hub, bindable("good", "3600"), ""},
			"one of a second more":           {hub, bindable("bad", "3601"), "must have the label cellcast.io/revoke-after-seconds alone, of 60 to 3600 seconds"},
			"one with data":                  {hub, with(func(s *corev1.Secret) { s.StringData = map[string]string{"a": "b"} }), "must hold nothing"},
			"a ServiceAccount's token":       {hub, with(tokenSecret), "must be of type Opaque"},
			"a token, as an administrator":   {admin, with(tokenSecret), "must be of type Opaque"},
			"data, as an administrator":      {admin, with(func(s *corev1.Secret) { s.Data = map[string][]byte{"a": []byte("b")} }), "must hold nothing"},
			"a finalizer":                    {hub, with(func(s *corev1.Secret) { s.Finalizers = []string{"acme.example.com/hold"} }), "must have no annotation, finalizer or owner"},
			"a name that the server makes":   {hub, with(func(s *corev1.Secret) { s.Name, s.GenerateName = "", "cellcast-" }), "must have a name of"},
			"one elsewhere":                  {hub, with(elsewhere), "forbidden"},
			"one elsewhere, by some mistake": {mistaken(t, a), with(elsewhere), "the hub may not touch a Secret in payments"},
		} {
			t.Run(name, func(t *testing.T) {
				_, err := test.client.CoreV1().Secrets(test.secret.Namespace).Create(ctx, test.secret, dryRun)
				if test.want == "" && err != nil || test.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			})
		}
	})

	good := create(t, hub, bindable("good", "600"))
	t.Run("the hub makes no more than the quota allows, and can't change that", func(t *testing.T) {
		_, err := hub.CoreV1().Secrets("ci").Create(ctx, bindable("third", "600"), dryRun)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: cellcast-revocable-secrets, requested: count/secrets=1, used: count/secrets=2, limited: count/secrets=2") {
			t.Errorf("got %v", err)
		}
		quotas := hub.CoreV1().ResourceQuotas("ci")
		if err := quotas.Delete(ctx, "cellcast-revocable-secrets", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("deleting the quota: got %v, want 403", err)
		}
		_, err = quotas.Patch(ctx, "cellcast-revocable-secrets", types.MergePatchType, []byte(`{"spec":{"hard":{"count/secrets":"9"}}}`), metav1.PatchOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("raising the quota: got %v, want 403", err)
		}
	})
	t.Run("the hub neither reads nor changes them", func(t *testing.T) {
		secrets := hub.CoreV1().Secrets("ci")
		_, get := secrets.Get(ctx, good.Name, metav1.GetOptions{})
		_, list := secrets.List(ctx, metav1.ListOptions{})
		_, update := secrets.Update(ctx, good, metav1.UpdateOptions{})
		if !apierrors.IsForbidden(get) || !apierrors.IsForbidden(list) || !apierrors.IsForbidden(update) {
			t.Errorf("get: %v, list: %v, update: %v; want 403", get, list, update)
		}
	})
	t.Run("nobody gives one more time", func(t *testing.T) {
		longer := good.DeepCopy()
		longer.Labels[revocation.LabelSeconds] = "601"
		_, err := admin.CoreV1().Secrets("ci").Update(ctx, longer, metav1.UpdateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "must keep the time that it was created with") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a token of the namespace ends with its Secret, and no other", func(t *testing.T) {
		for name, test := range map[string]struct {
			namespace string
			bound     *corev1.Secret
			want      string
		}{
			"bound to its Secret":             {"ci", good, ""},
			"bound to nothing":                {"ci", nil, "must be bound to the Secret of a revocable credential"},
			"bound to nothing, elsewhere":     {"payments", nil, ""},
			"bound to such a name, elsewhere": {"payments", good, "may not be bound to an object"},
		} {
			t.Run(name, func(t *testing.T) {
				_, err := hub.CoreV1().ServiceAccounts(test.namespace).CreateToken(ctx, "deployer", tokenFor(test.bound), metav1.CreateOptions{})
				if test.want == "" && err != nil || test.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			})
		}
	})
	t.Run("the hub deletes nothing but them", func(t *testing.T) {
		if err := hub.CoreV1().Secrets("ci").Delete(ctx, good.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("its own: %v", err)
		}
		err := mistaken(t, a).CoreV1().Secrets("kube-system").Delete(ctx, keep(t, admin), dryDelete)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the hub may not touch a Secret in kube-system") {
			t.Errorf("another: %v", err)
		}
	})

	t.Run("the agent ends a credential in time", func(t *testing.T) { endsInTime(t, a, admin, short) })
}

// Otherwise the cell would refuse what the hub doesn't yet know to be too much.
func TestTheAgentPromisesLessThanTheQuotaAllows(t *testing.T) {
	if revoker.MaxPending >= registration.DefaultRevocableQuota {
		t.Errorf("the agent promises a namespace with %d credentials, the default quota allows %d", revoker.MaxPending, registration.DefaultRevocableQuota)
	}
}

// endsInTime runs the agent's revoker after the Secret's time is over.
func endsInTime(t *testing.T, a *world.Cell, admin kubernetes.Interface, due *corev1.Secret) {
	ctx := t.Context()
	token, err := admin.CoreV1().ServiceAccounts("ci").CreateToken(ctx, "deployer", tokenFor(due), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bearer := kubernetes.NewForConfigOrDie(&rest.Config{Host: a.URL, BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: a.CABundle}})
	if err := whoIs(ctx, bearer); err != nil {
		t.Fatalf("the token isn't accepted while its Secret is there: %v", err)
	}
	began := time.Now()
	promised := runRevoker(t, a)
	poll(t, "the Secret that is due is deleted", func() bool {
		_, err := admin.CoreV1().Secrets("ci").Get(ctx, due.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	deleted := time.Since(began)
	if deleted > 15*time.Second { // then the alert fires
		t.Errorf("the Secret was deleted %s after it was due, want at most 15s", deleted)
	}
	poll(t, "the token is dead", func() bool { return apierrors.IsUnauthorized(whoIs(ctx, bearer)) })
	t.Logf("the Secret was deleted %s after the start, the token dead after %s", deleted.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if took := time.Since(began) - deleted; took > 45*time.Second { // ten are the API server's cache of tokens
		t.Errorf("the token died %s after its Secret, want at most 45s", took)
	}
	if got := promised(time.Now()); len(got) != 1 || got[0] != "ci" {
		t.Errorf("the agent promises %v, want ci", got)
	}
}

var (
	dryRun    = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	dryDelete = metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
)

// bindable is the Secret of a revocable credential.
func bindable(nonce, seconds string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ci", Name: revocation.SecretName(revocation.Owner{User: "test"}, nonce),
			Labels: map[string]string{revocation.LabelSeconds: seconds},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

func with(change func(*corev1.Secret)) *corev1.Secret {
	s := bindable("changed", "600")
	change(s)
	return s
}

func elsewhere(s *corev1.Secret) { s.Namespace = "payments" }

// tokenSecret makes a Secret one that the control plane writes a token into.
func tokenSecret(s *corev1.Secret) {
	s.Type = corev1.SecretTypeServiceAccountToken
	s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "deployer"}
}

// keep makes a Secret that isn't the hub's to delete.
func keep(t *testing.T, client kubernetes.Interface) string {
	return create(t, client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "keep"}}).Name
}

func create(t *testing.T, client kubernetes.Interface, s *corev1.Secret) *corev1.Secret {
	t.Helper()
	created, err := client.CoreV1().Secrets(s.Namespace).Create(t.Context(), s, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// mistaken is another user of the hub's issuer, whom someone made an
// administrator of the cell.
func mistaken(t *testing.T, a *world.Cell) kubernetes.Interface {
	t.Helper()
	user, err := a.User("cellcast-hub:someone", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(user.Config())
}

// tokenFor is a request for a token of ten minutes, bound to a Secret or to
// nothing.
func tokenFor(s *corev1.Secret) *authenticationv1.TokenRequest {
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)}}
	if s != nil {
		r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: s.Name, UID: s.UID}
	}
	return r
}

func whoIs(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	return err
}

// runRevoker ends the credentials of the namespace ci, as the agent, until the
// test ends. It returns what is promised.
func runRevoker(t *testing.T, a *world.Cell) func(time.Time) []string {
	t.Helper()
	identity, err := a.ServiceAccount(t.Context(), world.Namespace, world.AgentServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	r, err := revoker.New(metadata.NewForConfigOrDie(identity.Config()), []string{"ci"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r.Promised
}
