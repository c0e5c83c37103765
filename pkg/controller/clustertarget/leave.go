package clustertarget

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// patience is how long a row that is deleted waits for its target in all.
const patience = 5 * time.Second

// leaving is the deletion of a target.
type leaving struct {
	until time.Time
	done  bool
}

// leave lets go of a target whose row is deleted: what is under way is cut, a
// canary that may still be there is deleted, as well as that can be done in a
// short time, and the row is released.
func (r *Reconciler) leave(ctx context.Context, t *target, row *registryv1alpha1.ClusterTarget) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(row, registryv1alpha1.TargetFinalizer) {
		r.drop(t.key)
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now()
	leaving, begins := t.leaves(now)
	if begins {
		go r.clear(context.WithoutCancel(ctx), t, row.DeepCopy())
	}
	if left := t.leavesIn(leaving, now); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	r.Targets.Forget(t.uid)
	before := row.DeepCopy()
	controllerutil.RemoveFinalizer(row, registryv1alpha1.TargetFinalizer)
	if err := r.Client.Patch(ctx, row, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("release ClusterTarget %s: %w", t.key, err))
	}
	r.drop(t.key)
	return ctrl.Result{}, nil
}

// leaves cuts what is under way, the first time that it's asked.
func (t *target) leaves(now time.Time) (_ *leaving, begins bool) {
	t.stop(func() {
		if begins = t.leaving == nil; begins {
			t.leaving = &leaving{until: now.Add(patience)}
		}
	})
	return t.leaving, begins
}

// leavesIn is how long to wait for the target yet.
func (t *target) leavesIn(l *leaving, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.done {
		return 0
	}
	return l.until.Sub(now)
}

// clear waits for a run that was cut to delete its own canary, and deletes what
// is left then.
func (r *Reconciler) clear(ctx context.Context, t *target, row *registryv1alpha1.ClusterTarget) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	canaries := t.await(bounded, left(row))
	for _, canary := range canaries {
		if err := r.Targets.DeleteCanary(bounded, row, canary.PodName, canary.PodUID); err != nil {
			klog.FromContext(ctx).Error(nil, "The target is let go of, and a canary may be left behind", "target", t.key, "pod", canary.PodName, "err", cut(err))
		}
	}
	t.mu.Lock()
	t.leaving.done = true
	t.mu.Unlock()
	r.rouse(bounded, t.key)
}

// await waits for the run to end, and returns the canaries that aren't known to
// be deleted.
func (t *target) await(ctx context.Context, named *registryv1alpha1.ProbeCanary) []*registryv1alpha1.ProbeCanary {
	t.mu.Lock()
	run := t.run
	under := run != nil && run.begun()
	t.mu.Unlock()
	if !under {
		return some(named)
	}
	select {
	case <-run.done:
	case <-ctx.Done():
	}
	return run.journal.remains()
}

// some is a list of what there is.
func some(canaries ...*registryv1alpha1.ProbeCanary) []*registryv1alpha1.ProbeCanary {
	return slices.DeleteFunc(canaries, func(c *registryv1alpha1.ProbeCanary) bool { return c == nil })
}
