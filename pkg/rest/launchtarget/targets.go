package launchtarget

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/rest/target"
)

// targets are the brought targets whose owner covers the caller, by namespace
// and name.
func targets(rows []*registryv1alpha1.ClusterTarget, c policy.Caller) []cellcastv1alpha1.LaunchTarget {
	owned := slices.DeleteFunc(slices.Clone(rows), func(row *registryv1alpha1.ClusterTarget) bool {
		return !row.Spec.Owner.Covers(c.User, c.Groups)
	})
	slices.SortFunc(owned, func(a, b *registryv1alpha1.ClusterTarget) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	out := make([]cellcastv1alpha1.LaunchTarget, 0, len(owned))
	for _, row := range owned {
		reason := target.Unready(row)
		out = append(out, cellcastv1alpha1.LaunchTarget{
			ObjectMeta: metav1.ObjectMeta{
				Name:              registryv1alpha1.TargetAddress(row.UID),
				Labels:            row.Labels,
				CreationTimestamp: row.CreationTimestamp,
			},
			Status: cellcastv1alpha1.LaunchTargetStatus{
				Kind:         cellcastv1alpha1.LaunchTargetClusterTarget,
				Target:       &cellcastv1alpha1.LaunchTargetRow{Namespace: row.Namespace, Name: row.Name},
				State:        string(cmp.Or(row.Status.State, registryv1alpha1.TargetProbing)),
				Launchable:   reason == "",
				Reason:       reason,
				Owner:        row.Spec.Owner.String(),
				Capabilities: words(row.Status.Capabilities),
				Playbooks:    row.Spec.Bindings.Playbooks,
				Repositories: row.Spec.Bindings.Repositories,
				SecretRule:   secrets(row),
			},
		})
	}
	return out
}

// secrets is the rule on secrets that holds on a brought target, and why.
func secrets(row *registryv1alpha1.ClusterTarget) string {
	return fmt.Sprintf("Whoever administers namespace %s on the target's cluster can read every secret that a pod there gets. "+
		"A launch may only use secrets that you own, or that %s owns.", row.Spec.Namespace, row.Spec.Owner)
}

func words(capabilities []registryv1alpha1.TargetCapability) []string {
	var out []string
	for _, c := range capabilities {
		out = append(out, string(c))
	}
	return out
}
