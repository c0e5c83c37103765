package clustertarget

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// What a look says of a target. Why there's no connection is told to nobody but
// the hub's log: a target isn't a way to look into the hub's network.
const (
	saysRejected    = "The target's API refuses the credential (401), also as it was read anew. Put a valid one where credentialRef says; kubectl cellcast probe prints the command."
	saysUnreachable = "The target's API couldn't be connected to, several times in a row. It's tried again, and probed when it answers."
)

// conditions sets the conditions of a row.
type conditions struct {
	row *registryv1alpha1.ClusterTarget
	now metav1.Time
}

func setter(row *registryv1alpha1.ClusterTarget, now time.Time) conditions {
	return conditions{row, metav1.NewTime(now)}
}

func (c conditions) set(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&c.row.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: c.row.Generation, LastTransitionTime: c.now,
	})
}

// state sets the state, and Ready by it.
func (c conditions) state(state registryv1alpha1.TargetState, failing string) {
	c.row.Status.State, c.row.Status.Failing = state, failing
	switch {
	case state.Usable():
		c.row.Status.Failing = ""
		c.set(registryv1alpha1.ConditionReady, metav1.ConditionTrue, string(state), "The last probe passed.")
	case state == registryv1alpha1.TargetProbing:
		c.set(registryv1alpha1.ConditionReady, metav1.ConditionFalse, string(state), "The target is being probed; status.checks tells how far it is.")
	default:
		c.set(registryv1alpha1.ConditionReady, metav1.ConditionFalse, string(state), failing)
	}
}

func (c conditions) reachable() {
	c.set(registryv1alpha1.ConditionReachable, metav1.ConditionTrue, registryv1alpha1.ReasonConnected, "The target's API answers.")
}

func (c conditions) unreachable() {
	c.set(registryv1alpha1.ConditionReachable, metav1.ConditionFalse, registryv1alpha1.ReasonUnreachable, "The target's API can't be connected to from the hub.")
}

func (c conditions) credentialRead() {
	c.set(registryv1alpha1.ConditionCredentialAvailable, metav1.ConditionTrue, registryv1alpha1.ReasonCredentialRead, "The credential was read.")
}

func (c conditions) credentialUnavailable(advice string) {
	c.set(registryv1alpha1.ConditionCredentialAvailable, metav1.ConditionFalse, registryv1alpha1.ReasonCredentialUnavailable, advice)
}

// unknown says that a condition couldn't be told, unless it was told of the same
// spec before: then that stands. The reason is the state that kept it from being
// told.
func (c conditions) unknown(kind string) {
	was := meta.FindStatusCondition(c.row.Status.Conditions, kind)
	if was != nil && was.Status != metav1.ConditionUnknown && was.ObservedGeneration == c.row.Generation {
		return
	}
	c.set(kind, metav1.ConditionUnknown, string(c.row.Status.State), "The last probe didn't come so far.")
}

func nameConflict(row *registryv1alpha1.ClusterTarget, taken bool, now time.Time) {
	set := setter(row, now)
	if taken {
		set.set(registryv1alpha1.ConditionNameConflict, metav1.ConditionTrue, registryv1alpha1.ReasonNameTaken,
			"The fleet has a cell of this name, registered after the target. The target works on; register it under another name to be told apart from the cell.")
		return
	}
	set.set(registryv1alpha1.ConditionNameConflict, metav1.ConditionFalse, registryv1alpha1.ReasonNameFree, "No cell of the fleet has this name.")
}
