// Package clustertarget moves each brought target from state to state: it has
// the probe run when there's a reason, looks at the target in between, and keeps
// what was found in the row's status.
//
// One replica does it, the one that holds the lease. Nothing of a target's is
// ever waited for by a reconcile worker: runs and looks are goroutines of their
// own, bounded in all and for each namespace, so that dead targets stall nobody.
// Only a run that passed makes a target Ready. A run that ends in any other way,
// with the process too, has its canary deleted, by the next leader where need
// be. A target that is deleted waits for its cluster for five seconds and no
// longer.
package clustertarget

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
)

// Clusters knows the fleet's cells.
type Clusters interface {
	// Exists reports whether there's a Cluster of this name.
	Exists(ctx context.Context, name string) (bool, error)
}

// Config is what a Reconciler needs. All of it is required.
type Config struct {
	Client   client.Client
	Prober   Prober
	Targets  Targets
	Clusters Clusters
	// Audit gets a record of each run that ended, and of each condition that
	// changed.
	Audit audit.Sink
	Clock clock.WithTicker
	// Rescan is how often a target is looked at, give or take a tenth.
	Rescan time.Duration
}

// Reconciler keeps the status of one ClusterTarget at a time.
type Reconciler struct {
	Config
	runs, looks *pool
	// wake has the rows whose run, look or farewell has ended.
	wake chan event.GenericEvent

	mu      sync.Mutex
	targets map[types.NamespacedName]*target
}

// New returns a Reconciler that knows no target yet: what it finds in the rows
// is all that it goes by.
func New(config Config) *Reconciler {
	return &Reconciler{
		Config:  config,
		runs:    newPool(config.Clock, runsAtOnce, runsOfANamespace),
		looks:   newPool(config.Clock, runsAtOnce, runsOfANamespace),
		wake:    make(chan event.GenericEvent, 1024),
		targets: map[types.NamespacedName]*target{},
	}
}

// Reconcile takes a row one step on. It waits for nothing but the hub's own API.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var row registryv1alpha1.ClusterTarget
	if err := r.Client.Get(ctx, req.NamespacedName, &row); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.drop(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, err
	}
	t := r.track(&row)
	t.receive(row.Status.Run)
	switch {
	case !row.DeletionTimestamp.IsZero():
		return r.leave(ctx, t, &row)
	case t.ahead(row.ResourceVersion):
		// The row is older than what was written to it here, so it says nothing on
		// what is due; the watch brings the newer one.
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if err := r.hold(ctx, t, &row); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return r.keep(ctx, t, &row)
}

// hold puts the finalizer on the row, before anything is done on the target.
func (r *Reconciler) hold(ctx context.Context, t *target, row *registryv1alpha1.ClusterTarget) error {
	before := row.DeepCopy()
	if !controllerutil.AddFinalizer(row, registryv1alpha1.TargetFinalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, row, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add the finalizer to ClusterTarget %s: %w", client.ObjectKeyFromObject(row), err)
	}
	t.wrote(row.ResourceVersion)
	return nil
}

// keep brings the status up to date with what has ended, and begins what is due.
func (r *Reconciler) keep(ctx context.Context, t *target, row *registryv1alpha1.ClusterTarget) (ctrl.Result, error) {
	taken, err := r.Clusters.Exists(ctx, row.Name)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("is there a Cluster %s: %w", row.Name, err)
	}
	run, look := t.ended(row.Generation)
	if run != nil && run.fault != nil {
		t.settle(run, nil, r.Clock.Now(), row.Status.State, r.Rescan)
		return ctrl.Result{}, client.IgnoreNotFound(run.fault)
	}

	before, now := row.DeepCopy(), r.Clock.Now()
	nameConflict(row, taken, now)
	finish(row, run, now)
	news := observe(row, look, now)
	if news == registryv1alpha1.ProbeRecovered && recovering(&row.Status) && !t.repeats(now, r.Rescan) {
		news = ""
	}
	next := t.due(row, news)
	if unproven(row) {
		probing(row, now)
	}
	if err := r.write(ctx, t, before, row, run); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	t.settle(run, look, now, row.Status.State, r.Rescan)
	r.begin(t, row, next, now)
	return ctrl.Result{RequeueAfter: t.wait(now)}, nil
}

// begin starts the run that is due, or else the look that is.
func (r *Reconciler) begin(t *target, row *registryv1alpha1.ClusterTarget, next order, now time.Time) {
	if t.enqueueRun(row, next) {
		r.runs.add(row.Namespace, func(ctx context.Context) { r.perform(ctx, t) })
	}
	if look := t.enqueueLook(row, now); look != nil {
		r.looks.add(row.Namespace, func(ctx context.Context) { r.look(ctx, t, look) })
	}
}
