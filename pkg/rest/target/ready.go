package target

import (
	"cmp"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// Unready says in words why the target can't be used now, for a token or for a
// launch; it's empty where it can. What was proven of a former spec says nothing
// of the present one.
func Unready(row *registryv1alpha1.ClusterTarget) string {
	switch {
	case row.DeletionTimestamp != nil:
		return deleting
	case row.Status.State == "":
		return "it hasn't been probed yet"
	case row.Status.ObservedGeneration != row.Generation:
		return "its spec has changed, and no probe of what it says now has passed yet"
	case row.Status.State.Usable():
		return ""
	default:
		return "it is " + string(row.Status.State) + ": " + cmp.Or(row.Status.Failing, meaning(row.Status.State))
	}
}

const deleting = "it is being deleted"

// meaning says what a state means, where no failing item says more.
func meaning(state registryv1alpha1.TargetState) string {
	switch state {
	case registryv1alpha1.TargetReady:
		return "its last probe passed"
	case registryv1alpha1.TargetProbing:
		return "no probe of it has ended yet"
	case registryv1alpha1.TargetFailed:
		return "its last probe failed"
	case registryv1alpha1.TargetUnreachable:
		return "the hub can't connect to its API"
	case registryv1alpha1.TargetCredentialRejected:
		return "its API refuses the registered credential"
	case registryv1alpha1.TargetCredentialUnavailable:
		return "the registered credential can't be read"
	default:
		return "this hub doesn't know that state"
	}
}
