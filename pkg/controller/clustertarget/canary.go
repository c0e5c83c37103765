package clustertarget

import (
	"context"
	"strings"
	"time"

	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe"
)

// clearing bounds one attempt to delete a canary that was left behind.
const clearing = 5 * time.Second

// left is the canary that the row names and that isn't known to be deleted. A pod
// that isn't called as canaries are is none: whoever may write the status must not
// have the hub delete another.
func left(row *registryv1alpha1.ClusterTarget) *registryv1alpha1.ProbeCanary {
	run := row.Status.Run
	if run == nil || run.Canary == nil || run.Canary.DeletedAt != nil || !strings.HasPrefix(run.Canary.PodName, probe.CanaryName("")) {
		return nil
	}
	return run.Canary.DeepCopy()
}

// clearEarlier deletes the canary that an earlier run has left, as well as it
// can.
func (j *journal) clearEarlier(ctx context.Context) {
	j.mu.Lock()
	earlier := j.earlier
	j.mu.Unlock()
	if earlier == nil || deleteCanary(ctx, j.Targets, j.row, earlier) != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.earlier = nil
}

// clear deletes the run's own canary, where the probe couldn't.
func (j *journal) clear(ctx context.Context) {
	own := j.left()
	if own == nil {
		return
	}
	if err := deleteCanary(ctx, j.Targets, j.row, own); err != nil {
		klog.FromContext(ctx).Error(nil, "A canary may be left behind; it's deleted as soon as the target answers", "target", j.target.key, "pod", own.PodName, "err", cut(err))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, clearing)
	defer cancel()
	j.CanaryDeleted(ctx)
}

// left is the run's own canary, unless it's known to be deleted.
func (j *journal) left() *registryv1alpha1.ProbeCanary {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.canary == nil || j.canary.DeletedAt != nil {
		return nil
	}
	return j.canary.DeepCopy()
}

// remains are the canaries, the run's own and one of an earlier run, that aren't
// known to be deleted.
func (j *journal) remains() []*registryv1alpha1.ProbeCanary {
	own := j.left()
	j.mu.Lock()
	defer j.mu.Unlock()
	return some(j.earlier, own)
}

// canary is a patch of these fields of the canary.
func canary(fields map[string]any) map[string]any {
	return map[string]any{"run": map[string]any{"canary": fields}}
}

// deleteCanary deletes a canary within a short time. One that isn't there any
// more is deleted.
func deleteCanary(ctx context.Context, targets Targets, row *registryv1alpha1.ClusterTarget, c *registryv1alpha1.ProbeCanary) error {
	ctx, cancel := context.WithTimeout(ctx, clearing)
	defer cancel()
	return targets.DeleteCanary(ctx, row, c.PodName, c.PodUID)
}
