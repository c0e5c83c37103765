package clustertarget

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// clearing bounds one attempt to delete a canary that was left behind.
const clearing = 5 * time.Second

// left is the canary that the row names and that isn't known to be deleted.
func left(row *registryv1alpha1.ClusterTarget) *registryv1alpha1.ProbeCanary {
	if row.Status.Run == nil || row.Status.Run.Canary == nil || row.Status.Run.Canary.DeletedAt != nil {
		return nil
	}
	return row.Status.Run.Canary.DeepCopy()
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
		klog.FromContext(ctx).Error(err, "A canary may be left behind; it's deleted as soon as the target answers", "target", j.target.key, "pod", own.PodName)
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
