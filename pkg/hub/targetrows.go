package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// The fields that rows of targets are found by, in memory.
const (
	targetByUID    = "metadata.uid"
	targetByCanary = "status.run.canary.podName"
)

// targetRows are the rows of brought targets as this replica knows them. They
// must not be changed.
type targetRows struct{ rows cache.Cache }

// Target returns the row of this name.
func (r targetRows) Target(ctx context.Context, namespace, name string) (*registryv1alpha1.ClusterTarget, bool) {
	row := &registryv1alpha1.ClusterTarget{}
	err := r.rows.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, row, client.UnsafeDisableDeepCopy)
	return row, err == nil
}

// List returns all rows.
func (r targetRows) List(ctx context.Context) []*registryv1alpha1.ClusterTarget { return r.list(ctx) }

// by returns the one row with this value of a field.
func (r targetRows) by(ctx context.Context, field, value string) (*registryv1alpha1.ClusterTarget, bool) {
	if rows := r.list(ctx, client.MatchingFields{field: value}); len(rows) == 1 {
		return rows[0], true
	}
	return nil, false
}

func (r targetRows) list(ctx context.Context, options ...client.ListOption) []*registryv1alpha1.ClusterTarget {
	var list registryv1alpha1.ClusterTargetList
	if err := r.rows.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		klog.FromContext(ctx).Error(err, "The rows of targets can't be read")
		return nil
	}
	rows := make([]*registryv1alpha1.ClusterTarget, len(list.Items))
	for i := range list.Items {
		rows[i] = &list.Items[i]
	}
	return rows
}

func (r targetRows) exists(ctx context.Context, row *registryv1alpha1.ClusterTarget) bool {
	now, ok := r.Target(ctx, row.Namespace, row.Name)
	return ok && now.UID == row.UID
}

// index makes the rows findable. It comes before the cache starts.
func (r targetRows) index(ctx context.Context, indexer client.FieldIndexer) error {
	for field, value := range map[string]func(*registryv1alpha1.ClusterTarget) string{
		targetByUID: func(row *registryv1alpha1.ClusterTarget) string { return string(row.UID) },
		targetByCanary: func(row *registryv1alpha1.ClusterTarget) string {
			if run := row.Status.Run; run != nil && run.FinishedAt == nil && run.Canary != nil {
				return run.Canary.PodName
			}
			return ""
		},
	} {
		if err := indexer.IndexField(ctx, &registryv1alpha1.ClusterTarget{}, field, func(object client.Object) []string {
			row, ok := object.(*registryv1alpha1.ClusterTarget)
			if !ok || value(row) == "" {
				return nil
			}
			return []string{value(row)}
		}); err != nil {
			return fmt.Errorf("index targets by %s: %w", field, err)
		}
	}
	return nil
}
