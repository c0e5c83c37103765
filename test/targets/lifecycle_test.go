package targets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
)

// ready registers a target by a real pod.
func ready(t *testing.T) *brought {
	t.Helper()
	b := bring(t)
	b.keep(b.kubeconfig(b.token))
	b.register(nil)
	inState(t, b.first(), registryv1alpha1.TargetReady)
	return b
}

// watched are the states that a target goes through, until the function is called.
func (b *brought) watched() func() []registryv1alpha1.TargetState {
	b.t.Helper()
	watcher := must(b.hub.RegistryV1alpha1().ClusterTargets(b.name).Watch(b.t.Context(), metav1.ListOptions{ResourceVersion: b.row().ResourceVersion}))(b.t)
	b.t.Cleanup(watcher.Stop)
	seen := make(chan []registryv1alpha1.TargetState, 1)
	go func() {
		var states []registryv1alpha1.TargetState
		for event := range watcher.ResultChan() {
			if row, ok := event.Object.(*registryv1alpha1.ClusterTarget); ok && row.Name == b.name {
				states = append(states, row.Status.State)
			}
		}
		seen <- slices.Compact(states)
	}()
	return func() []registryv1alpha1.TargetState {
		watcher.Stop()
		return <-seen
	}
}

// awaitsRun is the row once a run for the reason has ended in the state.
func (b *brought) awaitsRun(reason registryv1alpha1.ProbeReason, state registryv1alpha1.TargetState) *registryv1alpha1.ClusterTarget {
	b.t.Helper()
	return b.ends(func(row *registryv1alpha1.ClusterTarget) error {
		if row.Status.Run.Reason != reason || row.Status.State != state {
			return fmt.Errorf("it's %s, by a run for the reason %s: %s", row.Status.State, row.Status.Run.Reason, row.Status.Failing)
		}
		return nil
	})
}

func TestWhoAsksAtOnceGetsOneProbe(t *testing.T) {
	requireNode(t)
	b := ready(t)
	_, eve := userOf(t, "eve", "team-b") // no owner, and RBAC lets her ask
	b.mayOwn(clientset(t, hub.Hub.Admin), rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "eve"})
	eventually(t, "RBAC lets eve ask", func(ctx context.Context) error {
		_, err := eve.RegistryV1alpha1().ClusterTargets(b.name).List(ctx, metav1.ListOptions{})
		return err
	})
	var asking sync.WaitGroup
	var mu sync.Mutex
	runs, joined := map[string]bool{}, 0
	for _, client := range []versioned.Interface{b.hub, eve, b.hub, eve} {
		asking.Go(func() {
			answer, err := b.asksForAProbe(t.Context(), client)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if runs[answer.Run] = true; answer.Joined {
				joined++
			}
		})
	}
	asking.Wait()
	if len(runs) != 1 || joined != 3 {
		t.Errorf("of four who asked, %d joined; the runs are %v", joined, runs)
	}
	row := b.awaitsRun(registryv1alpha1.ProbeRequested, registryv1alpha1.TargetReady)
	if !runs[row.Status.Run.ID] {
		t.Errorf("the run was %s", row.Status.Run.ID)
	}
}

// A new token takes the place of the old one, and the target is Ready all along.
func TestATokenIsRotated(t *testing.T) {
	requireNode(t)
	b := ready(t)
	before, states := b.row(), b.watched()
	token := must(acme().Token(t.Context(), b.name, account, 2*time.Hour))(t)
	b.rekeys(b.kubeconfig(token))
	row := b.awaitsRun(registryv1alpha1.ProbeCredentialChanged, registryv1alpha1.TargetReady)
	if got := states(); !slices.Equal(got, []registryv1alpha1.TargetState{registryv1alpha1.TargetReady}) {
		t.Errorf("meanwhile it was %v", got)
	}
	kept := must(b.core.CoreV1().Secrets(b.name).Get(t.Context(), b.name+"-kubeconfig", metav1.GetOptions{}))(t)
	if got := row.Status.CredentialVersion; got != "secret:"+kept.ResourceVersion || got == before.Status.CredentialVersion {
		t.Errorf("the version was %s and is %s, of the Secret's %s", before.Status.CredentialVersion, got, kept.ResourceVersion)
	}
	if file := must(os.ReadFile(filepath.Join(tokenDir, string(row.UID))))(t); string(file) != token {
		t.Error("the token file has another token than the Secret")
	}
	b.noCanary()
}

// revokedWithin is the time from one look to the next, and what the API server of
// the target adds: it remembers a token that it has taken for ten seconds, which a
// look may fall into, and the one after that doesn't. The rest is for a slow machine.
const revokedWithin = 2*rescan + rescan/5 + 28*time.Second

// Whoever takes the credential back on the target sees that the hub has noticed,
// and it's never told as a fault of the network.
func TestACredentialIsRevokedAndReplaced(t *testing.T) {
	requireNode(t)
	b := ready(t)
	states, began := b.watched(), time.Now()
	if err := b.target.CoreV1().ServiceAccounts(b.name).Delete(t.Context(), account, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	row := b.awaits(registryv1alpha1.TargetCredentialRejected)
	took := time.Since(began)
	t.Logf("the hub noticed after %s", took.Round(100*time.Millisecond))
	if took > revokedWithin {
		t.Errorf("the hub noticed after %s, more than %s", took, revokedWithin)
	}
	if want := "Authenticated: The target's API refuses the credential (401), also as it was read anew. Put a valid one where credentialRef says; kubectl cellcast probe prints the command."; row.Status.Failing != want {
		t.Errorf("it says %q, want %q", row.Status.Failing, want)
	}
	for condition, want := range map[string]bool{
		registryv1alpha1.ConditionReachable: true, registryv1alpha1.ConditionCredentialAvailable: true, registryv1alpha1.ConditionReady: false,
	} {
		if got := meta.IsStatusConditionTrue(row.Status.Conditions, condition); got != want {
			t.Errorf("%s is %t: %+v", condition, got, meta.FindStatusCondition(row.Status.Conditions, condition))
		}
	}
	b.rekeys(b.kubeconfig(b.reaccounts()))
	b.awaitsRun(registryv1alpha1.ProbeCredentialChanged, registryv1alpha1.TargetReady)
	want := []registryv1alpha1.TargetState{registryv1alpha1.TargetReady, registryv1alpha1.TargetCredentialRejected, registryv1alpha1.TargetReady}
	if got := states(); !slices.Equal(got, want) && !slices.Equal(got, want[1:]) {
		t.Errorf("it was %v, want %v", got, want)
	}
	b.noCanary()
}

// The keys that every ServiceAccount may read by default, here not.
func TestSigningKeysThatMayNotBeRead(t *testing.T) {
	requireNode(t)
	b := bring(t)
	const name = "system:service-account-issuer-discovery"
	bindings := b.target.RbacV1().ClusterRoleBindings()
	was := must(bindings.Get(t.Context(), name, metav1.GetOptions{}))(t)
	if err := bindings.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		was.ResourceVersion, was.UID = "", ""
		if _, err := bindings.Create(context.Background(), was, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		_ = bindings.Delete(context.Background(), "cellcast-hub-issuer-discovery:"+b.name+":"+account, metav1.DeleteOptions{})
	})
	mayReadKeys := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("the account may read the keys: %t", want), func(ctx context.Context) error {
			answer, err := b.target.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + b.name + ":" + account, Groups: []string{"system:serviceaccounts", "system:authenticated"},
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/openid/v1/jwks", Verb: "get"},
			}}, metav1.CreateOptions{})
			if err == nil && answer.Status.Allowed != want {
				err = errors.New("not yet")
			}
			return err
		})
	}
	mayReadKeys(false)
	b.keep(b.kubeconfig(b.token))
	b.register(nil)
	row := b.first()
	fault{
		check: registryv1alpha1.CheckSigningKeys, result: registryv1alpha1.CheckFailed, state: registryv1alpha1.TargetFailed,
		message: "The credential may not read the target's signing keys (/openid/v1/jwks and /.well-known/openid-configuration), by which pods prove who they are. " +
			"By default every ServiceAccount may: ask the cluster's administrator to bind ClusterRole system:service-account-issuer-discovery, as the command that the probe prints does.",
	}.holds(b, row)
	applies(b, check(t, row, registryv1alpha1.CheckSigningKeys))
	mayReadKeys(true)
	b.becomesReady(registryv1alpha1.CheckSigningKeys, "")
}
