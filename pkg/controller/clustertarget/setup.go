package clustertarget

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// nameField is the field that targets are found by when a Cluster comes or goes.
const nameField = "metadata.name"

// SetupWithManager registers the reconciler, its runs and its looks behind the
// manager's lease. Changes of status wake it too: requests and receipts come so.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	index := mgr.GetFieldIndexer()
	if err := index.IndexField(context.Background(), &registryv1alpha1.ClusterTarget{}, nameField, byName); err != nil {
		return err
	}
	for _, p := range []*pool{r.runs, r.looks} {
		if err := mgr.Add(p); err != nil {
			return err
		}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("clustertarget").
		For(&registryv1alpha1.ClusterTarget{}).
		Watches(&registryv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.named), builder.WithPredicates(cameOrWent())).
		WatchesRawSource(source.Channel(r.wake, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Complete(r)
}

func byName(object client.Object) []string { return []string{object.GetName()} }

// cameOrWent leaves out changes of a Cluster, which keeps its name.
func cameOrWent() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// named returns the targets, in whichever namespace, that have the Cluster's
// name.
func (r *Reconciler) named(ctx context.Context, cluster client.Object) []ctrl.Request {
	var rows registryv1alpha1.ClusterTargetList
	if err := r.Client.List(ctx, &rows, client.MatchingFields{nameField: cluster.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "The targets with a Cluster's name can't be listed", "cluster", cluster.GetName())
		return nil
	}
	requests := make([]ctrl.Request, len(rows.Items))
	for i := range rows.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&rows.Items[i])
	}
	return requests
}

// ClusterRows are the Clusters that a reader finds. The reader of the manager is
// the one: what wakes the reconciler is in it by then.
type ClusterRows struct{ client.Reader }

// Exists reports whether there's a Cluster of this name.
func (c ClusterRows) Exists(ctx context.Context, name string) (bool, error) {
	err := c.Get(ctx, types.NamespacedName{Name: name}, &registryv1alpha1.Cluster{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// rouse has the row reconciled.
func (r *Reconciler) rouse(ctx context.Context, key types.NamespacedName) {
	row := &registryv1alpha1.ClusterTarget{}
	row.Namespace, row.Name = key.Namespace, key.Name
	select {
	case r.wake <- event.GenericEvent{Object: row}:
	case <-ctx.Done():
	}
}
