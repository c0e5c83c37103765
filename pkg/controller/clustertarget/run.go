package clustertarget

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe"
)

// timeBox bounds a run.
const timeBox = 4 * time.Minute

// Prober goes through the checklist.
type Prober interface {
	// Probe has the credential read, runs every item against the target, and tells
	// the progress. It returns when ctx ends, having done what it can in little
	// time to delete its canary.
	Probe(ctx context.Context, row *registryv1alpha1.ClusterTarget, run registryv1alpha1.ProbeRun, progress probe.Progress) Result
}

// run is a run that waits for its turn or is under way.
type run struct {
	row     *registryv1alpha1.ClusterTarget
	order   order
	done    chan struct{}
	journal *journal // once it has begun
	end     context.CancelFunc
	cut     bool
}

func (r *run) begun() bool { return r.end != nil }

// cancel ends the run, whose result is of no interest any more.
func (r *run) cancel() {
	if r.cut = true; r.begun() {
		r.end()
	}
}

// ended is a run that has ended and isn't in the row yet.
type ended struct {
	row     *registryv1alpha1.ClusterTarget
	run     registryv1alpha1.ProbeRun
	started time.Time
	took    time.Duration
	result  Result
	// fault is why it couldn't even begin: the hub's own.
	fault error
}

// enqueueRun notes the run that is due, and reports whether it's new. One that
// still waits for its turn takes the place of itself, with what the row says now.
func (t *target) enqueueRun(row *registryv1alpha1.ClusterTarget, next order) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next == (order{}) || t.run != nil && t.run.begun() {
		return false
	}
	if t.look != nil {
		t.look.cancel()
		t.look = nil
	}
	if t.run != nil {
		t.run.row, t.run.order = row.DeepCopy(), next
		return false
	}
	t.run = &run{row: row.DeepCopy(), order: next, done: make(chan struct{})}
	return true
}

// perform is a run from its turn to its end.
func (r *Reconciler) perform(ctx context.Context, t *target) {
	box, end := context.WithTimeout(ctx, timeBox)
	defer end()
	if run := r.admit(t, end); run != nil {
		ended := r.probe(box, t, run)
		t.finished(ended, ctx.Err() != nil)
	}
	if t.straggled() {
		r.Targets.Forget(t.uid)
	}
	r.rouse(ctx, t.key)
}

// admit begins the run; nil when it was cancelled while it waited.
func (r *Reconciler) admit(t *target, end context.CancelFunc) *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run.cut {
		close(t.run.done)
		t.run = nil
		return nil
	}
	t.run.end = end
	t.run.journal = newJournal(r.Config, t, t.run.row, t.run.order.id)
	return t.run
}

// finished keeps how the run ended, unless it was cut: by a change of the row,
// or by the end of this process, after which another one resumes it.
func (t *target) finished(end *ended, stopped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.run.cut && !stopped {
		t.runEnded = end
	}
	close(t.run.done)
	t.run = nil
}

// probe clears what an earlier run has left, and probes.
func (r *Reconciler) probe(ctx context.Context, t *target, run *run) *ended {
	row, started, j := run.row, r.Clock.Now(), run.journal
	end := &ended{row: row, started: started, run: registryv1alpha1.ProbeRun{
		ID: run.order.id, Reason: run.order.reason, Generation: row.Generation, StartedAt: wholeSeconds(started),
	}}
	j.clearEarlier(ctx)
	if end.fault = j.begin(ctx, end.run); end.fault != nil {
		return end
	}
	end.result = r.Prober.Probe(ctx, row, end.run, j)
	if ctx.Err() != nil {
		end.result = timedOut(end.result)
	}
	j.close()
	j.clear(context.WithoutCancel(ctx))
	end.took = r.Clock.Since(started)
	for _, fault := range end.result.Faults {
		klog.FromContext(ctx).Info("An item of a probe ended as it did because of this", "target", t.key, "run", end.run.ID, "item", fault.Check, "err", cut(fault.Err))
	}
	return end
}

// cut bounds what the log keeps of a fault, which may be the target's own text.
func cut(err error) string { return fmt.Sprintf("%.1024s", err.Error()) }

// timedOut is the result of a run that took too long: how far it came is told,
// and nothing else.
func timedOut(r Result) Result {
	return Result{CredentialVersion: r.CredentialVersion, Result: probe.Result{
		Checks: r.Checks, Faults: r.Faults, State: registryv1alpha1.TargetFailed,
		Failing: "The probe didn't end within 4 minutes: what answers, answers too slowly. Once that's mended, ask for another one.",
	}}
}
