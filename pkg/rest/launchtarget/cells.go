package launchtarget

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/registry"
)

// cellSecrets is the rule on secrets that holds on every cell.
const cellSecrets = "A launch may use any secret that you may get." //nolint:gosec // a rule, not a credential

// cells are the cells as a caller sees them whom these policies may govern.
func cells(rows []*registryv1alpha1.Cluster, reachable []*policy.Policy, all bool) []cellcastv1alpha1.LaunchTarget {
	var out []cellcastv1alpha1.LaunchTarget
	for _, row := range rows {
		permits := registry.Permitting(reachable, row)
		if len(permits) == 0 && !all {
			continue
		}
		reason := closed(row.Spec.State)
		if len(permits) == 0 {
			reason = "no PlacementPolicy permits you this cell"
		}
		out = append(out, cellcastv1alpha1.LaunchTarget{
			ObjectMeta: metav1.ObjectMeta{Name: row.Name, Labels: row.Labels, CreationTimestamp: row.CreationTimestamp},
			Status: cellcastv1alpha1.LaunchTargetStatus{
				Kind:       cellcastv1alpha1.LaunchTargetCluster,
				State:      string(row.Spec.State),
				Launchable: reason == "",
				Reason:     reason,
				Policies:   permits,
				SecretRule: cellSecrets,
			},
		})
	}
	return out
}

// closed says why nothing is launched on a cell in this state; it's empty where
// something is.
func closed(state registryv1alpha1.ClusterState) string {
	switch state {
	case registryv1alpha1.StateLive:
		return ""
	case registryv1alpha1.StateDark:
		return "the cell is DARK and takes no launch"
	case registryv1alpha1.StateDraining:
		return "the cell is DRAINING and takes no launch; what runs there goes on"
	default:
		return "the cell is in a state that this hub doesn't know"
	}
}
