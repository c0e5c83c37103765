// Package cluster keeps the status of Clusters: whether a cell takes
// placements and since when, whether the hub really could authenticate there,
// and whether its reporter's keys can be read.
//
// It never changes a spec, and it never decides about a placement: a cell that
// doesn't trust the hub is still ranked, and its mint fails with the reason.
package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/controller/change"
)

const (
	// recheck is how often a trust that stands is tried again.
	recheck = 5 * time.Minute
	// retry is how soon a trust that doesn't stand is tried again.
	retry = 15 * time.Second
	// patience bounds one look at a cell.
	patience = 10 * time.Second
)

// Finding is what a look at a cell found: the status, reason and message of a
// condition.
type Finding struct {
	OK      bool
	Reason  string
	Message string
}

// Cells looks at cells as the hub.
type Cells interface {
	// Trust authenticates at the cell.
	Trust(ctx context.Context, cluster *registryv1alpha1.Cluster) Finding
	// ReporterKeys reads the keys of the cell's reporter.
	ReporterKeys(ctx context.Context, cluster *registryv1alpha1.Cluster) Finding
}

// Reconciler keeps the status of one Cluster at a time.
type Reconciler struct {
	Client client.Client
	Cells  Cells
	// Audit gets a record of each condition that changed.
	Audit audit.Sink
	Clock clock.PassiveClock
}

// SetupWithManager registers the reconciler. A change of status alone, which
// is its own doing, doesn't wake it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("cluster").
		For(&registryv1alpha1.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// A dead cell takes its whole patience; it must not hold up the others.
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Complete(r)
}

// Reconcile brings the status of a Cluster up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cluster registryv1alpha1.Cluster
	if err := r.Client.Get(ctx, req.NamespacedName, &cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := cluster.DeepCopy()

	look, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	trust := r.Cells.Trust(look, &cluster)
	keys := r.Cells.ReporterKeys(look, &cluster)

	r.observeState(&cluster)
	set(&cluster, registryv1alpha1.ConditionAcceptingPlacements, accepting(cluster.Spec.State))
	set(&cluster, registryv1alpha1.ConditionTrustEstablished, trust)
	set(&cluster, registryv1alpha1.ConditionReporterTrusted, keys)
	cluster.Status.ObservedGeneration = cluster.Generation

	if !equality.Semantic.DeepEqual(before.Status, cluster.Status) {
		if err := r.Client.Status().Patch(ctx, &cluster, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("patch the status of Cluster %s: %w", cluster.Name, err))
		}
		row := audit.Record{Kind: "Cluster", Name: cluster.Name, Cell: cluster.Name}
		if err := change.Record(r.Audit, row, before.Status.Conditions, cluster.Status.Conditions, r.Clock.Now()); err != nil {
			return ctrl.Result{}, err
		}
	}
	if trust.OK && (keys.OK || keys.Reason == registryv1alpha1.ReasonNoReporter) {
		return ctrl.Result{RequeueAfter: recheck}, nil
	}
	return ctrl.Result{RequeueAfter: retry}, nil
}

func (r *Reconciler) observeState(cluster *registryv1alpha1.Cluster) {
	if cluster.Status.ObservedState == cluster.Spec.State && cluster.Status.StateSince != nil {
		return
	}
	now := metav1.NewTime(r.Clock.Now())
	cluster.Status.ObservedState = cluster.Spec.State
	cluster.Status.StateSince = &now
}

func accepting(state registryv1alpha1.ClusterState) Finding {
	switch state {
	case registryv1alpha1.StateLive:
		return Finding{true, registryv1alpha1.ReasonLive, "The cell takes placements."}
	case registryv1alpha1.StateDark:
		return Finding{false, registryv1alpha1.ReasonDark, "The cell takes only placements that ask for a dark cell and may have one."}
	case registryv1alpha1.StateDraining:
		return Finding{false, registryv1alpha1.ReasonDraining, "The cell takes no new placement. What runs there keeps serving."}
	default:
		return Finding{false, registryv1alpha1.ReasonInvalid, "The state is none that this hub knows; the cell takes no placement."}
	}
}

func set(cluster *registryv1alpha1.Cluster, kind string, f Finding) {
	status := metav1.ConditionFalse
	if f.OK {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: f.Reason, Message: f.Message,
		ObservedGeneration: cluster.Generation,
	})
}
