package target

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

func TestATargetIsUsableInItsUsableStatesAndNoOther(t *testing.T) {
	for _, state := range append(registryv1alpha1.TargetStates(), "Invented") {
		t.Run(string(state), func(t *testing.T) {
			row := ready()
			row.Status.State = state
			if why := Unready(row); (why == "") != state.Usable() {
				t.Errorf("it says %q", why)
			}
			if meaning(state) == "" {
				t.Error("the state means nothing")
			}
		})
	}
}

func TestUnreadySaysTheMostTellingThing(t *testing.T) {
	for sentence, tt := range map[string]struct {
		arrange func(*registryv1alpha1.ClusterTarget)
		want    string
	}{
		"deletion comes before what was wrong": {func(row *registryv1alpha1.ClusterTarget) {
			row.DeletionTimestamp, row.Status.State = &metav1.Time{Time: time.Now()}, registryv1alpha1.TargetFailed
		}, "it is being deleted"},
		"what a former spec lacked isn't told": {func(row *registryv1alpha1.ClusterTarget) {
			row.Generation, row.Status.State, row.Status.Failing = 9, registryv1alpha1.TargetFailed, "Namespace: not there"
		}, "its spec has changed, and no probe of what it says now has passed yet"},
		"the failing item says more than the state": {func(row *registryv1alpha1.ClusterTarget) {
			row.Status.State, row.Status.Failing = registryv1alpha1.TargetCredentialRejected, "Authenticated: the API answered 401"
		}, "it is CredentialRejected: Authenticated: the API answered 401"},
		"a first probe is under way": {func(row *registryv1alpha1.ClusterTarget) {
			row.Status.State = registryv1alpha1.TargetProbing
		}, "it is Probing: no probe of it has ended yet"},
	} {
		t.Run(sentence, func(t *testing.T) {
			row := ready()
			tt.arrange(row)
			if got := Unready(row); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
