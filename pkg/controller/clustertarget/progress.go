package clustertarget

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe"
)

var _ probe.Progress = (*journal)(nil)

// Checked keeps the items so far. They are written soon, not at once.
func (j *journal) Checked(_ context.Context, checks []registryv1alpha1.TargetCheck) {
	j.mu.Lock()
	j.checks, j.dirty = checks, true
	j.mu.Unlock()
	select {
	case j.flush <- struct{}{}:
	default:
	}
}

// Identified writes how the pods of the target are proven.
func (j *journal) Identified(ctx context.Context, identity registryv1alpha1.TargetIdentity) error {
	return j.write(ctx, map[string]any{"identity": identity})
}

// CanaryNamed writes what the canary will be called, over one that an earlier
// run left: that one is tried once more before.
func (j *journal) CanaryNamed(ctx context.Context, podName string) error {
	j.clearEarlier(ctx)
	j.mu.Lock()
	if j.earlier != nil {
		klog.FromContext(ctx).Error(nil, "A canary of an earlier run couldn't be deleted; it's left to its own deadline", "target", j.target.key, "pod", j.earlier.PodName)
	}
	j.canary = &registryv1alpha1.ProbeCanary{PodName: podName}
	j.mu.Unlock()
	return j.write(ctx, canary(map[string]any{"podName": podName, "podUID": nil, "receivedAt": nil, "deletedAt": nil}))
}

// CanaryCreated writes which pod it is.
func (j *journal) CanaryCreated(ctx context.Context, podUID types.UID) error {
	j.mu.Lock()
	j.canary.PodUID = podUID
	j.mu.Unlock()
	return j.write(ctx, canary(map[string]any{"podUID": podUID}))
}

// AwaitReceipt waits until some replica has written the receipt to the row.
func (j *journal) AwaitReceipt(ctx context.Context) error {
	select {
	case <-j.receipt:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CanaryDeleted writes that the canary is deleted.
func (j *journal) CanaryDeleted(ctx context.Context) {
	now := wholeSeconds(j.Clock.Now())
	j.mu.Lock()
	j.canary.DeletedAt = &now
	j.mu.Unlock()
	if err := j.write(ctx, canary(map[string]any{"deletedAt": now})); err != nil {
		klog.FromContext(ctx).Error(err, "The row doesn't say that its canary is deleted; it's deleted once more", "target", j.target.key, "run", j.id)
	}
}

// receive looks for the receipt of the run's canary in the row's status.
func (t *target) receive(status *registryv1alpha1.ProbeRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run == nil || !t.run.begun() || status == nil || status.ID != t.run.order.id {
		return
	}
	t.run.journal.receive(status.Canary)
}

func (j *journal) receive(found *registryv1alpha1.ProbeCanary) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.received || j.canary == nil || found == nil || found.PodName != j.canary.PodName || found.ReceivedAt == nil {
		return
	}
	j.received = true
	close(j.receipt)
}
