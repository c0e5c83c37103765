package clustertarget

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// between is the least time between two writes of a run's progress.
const between = 250 * time.Millisecond

// journal keeps the progress of one run in the row. Each write is a merge patch
// of just what the step changes, for other replicas write to the same status:
// status.request and status.run.canary.receivedAt are theirs, and are touched
// only where a new canary is named, of which there's no receipt yet.
type journal struct {
	Config
	target *target
	row    *registryv1alpha1.ClusterTarget // as the run found it
	id     string

	// turn has the time of the last write, and is empty during one: writes keep
	// their order.
	turn chan time.Time

	mu       sync.Mutex
	checks   []registryv1alpha1.TargetCheck
	dirty    bool
	earlier  *registryv1alpha1.ProbeCanary // of an earlier run, not known to be deleted
	canary   *registryv1alpha1.ProbeCanary
	received bool

	receipt   chan struct{} // closed when the receipt is in the row
	flush     chan struct{}
	stop      context.CancelFunc
	flushings sync.WaitGroup
}

func newJournal(config Config, t *target, row *registryv1alpha1.ClusterTarget, id string) *journal {
	turn := make(chan time.Time, 1)
	turn <- time.Time{}
	return &journal{
		turn: turn, Config: config, target: t, row: row, id: id, earlier: left(row),
		receipt: make(chan struct{}), flush: make(chan struct{}, 1), stop: func() {},
	}
}

// begin writes that the run has begun. A canary that couldn't be cleared stays
// named until it is.
func (j *journal) begin(ctx context.Context, run registryv1alpha1.ProbeRun) error {
	fields := map[string]any{"id": run.ID, "reason": run.Reason, "generation": run.Generation, "startedAt": run.StartedAt, "finishedAt": nil}
	if j.earlier == nil {
		fields["canary"] = nil
	}
	if err := j.write(ctx, map[string]any{"run": fields, "checks": nil}); err != nil {
		return err
	}
	ctx, j.stop = context.WithCancel(ctx)
	j.flushings.Go(func() { j.flushing(ctx) })
	return nil
}

// close ends the writing of items. The end of the run writes them all.
func (j *journal) close() {
	j.stop()
	j.flushings.Wait()
}

// flushing writes items as they come, as fast as it may.
func (j *journal) flushing(ctx context.Context) {
	for {
		select {
		case <-j.flush:
			if err := j.write(ctx, nil); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "The progress of a probe isn't in its row", "target", j.target.key, "run", j.id)
			}
		case <-ctx.Done():
			return
		}
	}
}

// write patches these fields of the status, and the items that aren't in the
// row yet, once it may.
func (j *journal) write(ctx context.Context, status map[string]any) error {
	if err := j.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { j.turn <- j.Clock.Now() }()
	patch, items := j.compose(status)
	if patch == nil {
		return nil
	}
	row := &registryv1alpha1.ClusterTarget{ObjectMeta: metav1.ObjectMeta{Namespace: j.row.Namespace, Name: j.row.Name}}
	err := j.Client.Status().Patch(ctx, row, client.RawPatch(types.MergePatchType, patch))
	if err != nil {
		j.mu.Lock()
		j.dirty = j.dirty || items
		j.mu.Unlock()
		return fmt.Errorf("write the progress of run %s to ClusterTarget %s: %w", j.id, j.target.key, err)
	}
	j.target.wrote(row.ResourceVersion)
	return nil
}

// takeTurn waits until the last write is some time ago. A turn that's taken is to
// be given back.
func (j *journal) takeTurn(ctx context.Context) error {
	var last time.Time
	select {
	case last = <-j.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	timer := j.Clock.NewTimer(between - j.Clock.Since(last))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		j.turn <- last
		return ctx.Err()
	}
}

// compose returns the patch, nil where there's nothing to write, and whether
// it has the items.
func (j *journal) compose(status map[string]any) (patch []byte, items bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dirty {
		if status == nil {
			status = map[string]any{}
		}
		status["checks"] = j.checks
		items, j.dirty = true, false
	}
	if status == nil {
		return nil, false
	}
	// A row that was made anew under the name is another target's: the API server
	// refuses a patch with another UID.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": j.row.UID}, "status": status})
	if err != nil {
		panic(err) // plain values of our own
	}
	return patch, items
}

// wholeSeconds is the time as it's kept.
func wholeSeconds(t time.Time) metav1.Time { return metav1.NewTime(t).Rfc3339Copy() }
