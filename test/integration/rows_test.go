package integration

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// stranger is a row for the API server of prod-eu under an audience that it
// doesn't accept: a cell that is there and doesn't know the hub.
func stranger(name string, labels map[string]string) *registryv1alpha1.Cluster {
	row := hub.Cell("prod-eu").Cluster()
	row.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: labels}
	row.Spec.Trust.Audience = "cellcast:cell:" + name
	return row
}

func quantities(pairs ...string) cellcastv1alpha1.ResourceList {
	list := cellcastv1alpha1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// condition returns nil when the Cluster has the condition so.
func condition(ctx context.Context, cluster, kind string, status metav1.ConditionStatus, reason string) error {
	row, err := hub.Admin.RegistryV1alpha1().Clusters().Get(ctx, cluster, metav1.GetOptions{})
	if err != nil {
		return err
	}
	got := meta.FindStatusCondition(row.Status.Conditions, kind)
	if got == nil || got.Status != status || got.Reason != reason {
		return fmt.Errorf("condition %s of %s is %+v", kind, cluster, got)
	}
	return nil
}
