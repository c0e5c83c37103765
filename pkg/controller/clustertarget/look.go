package clustertarget

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/probe"
)

// lookBox bounds a look: the source, and one call that may be repeated.
const lookBox = 30 * time.Second

// Sight is what a look finds.
type Sight struct {
	// CredentialVersion is the version of the credential as its source has it
	// now. It's known too where the target then wasn't asked or refused it.
	CredentialVersion string
}

// Targets is the hub's hold on brought targets.
type Targets interface {
	// Look reads the credential anew and makes one light call with it. Its error
	// has a *kubeconfig.Error in its chain where the kubeconfig isn't of the closed
	// form, a probe.Adviser where the source can't be read, and else a kind of
	// package failure.
	Look(ctx context.Context, row *registryv1alpha1.ClusterTarget) (Sight, error)
	// DeleteCanary deletes the pod of this name and, where it's known, this UID.
	// It returns nil when there's no such pod.
	DeleteCanary(ctx context.Context, row *registryv1alpha1.ClusterTarget, podName string, podUID types.UID) error
	// Forget lets go of client, keys and credential. It doesn't wait for anything.
	Forget(uid types.UID)
}

// look is a look that waits for its turn, is under way or has ended.
type look struct {
	row    *registryv1alpha1.ClusterTarget
	cancel context.CancelFunc

	sight  Sight
	found  found
	advice string
	// failures are the looks in a row that failed to connect, this one too.
	failures int
	// cleared is the name of a canary that was left behind and is deleted now.
	cleared string
}

// found is how a look ended.
type found string

const (
	// answered: the target took the credential.
	answered found = "answered"
	// refused: the kubeconfig isn't of the closed form. The target wasn't asked.
	refused found = "refused"
	// unavailable: the credential couldn't be read. The target wasn't asked.
	unavailable found = "unavailable"
	// rejected: the target doesn't take the credential.
	rejected found = "rejected"
	// unconnected: the target couldn't be connected to, or said nothing in time.
	unconnected found = "unconnected"
	// unclear: something answered, and that's all that can be said.
	unclear found = "unclear"
)

// verbosity is that of the log: what takes a target out of use is told at 0, and
// no more once it's in the row.
func (f found) verbosity(state registryv1alpha1.TargetState) int {
	told := map[found]registryv1alpha1.TargetState{
		unconnected: registryv1alpha1.TargetUnreachable,
		rejected:    registryv1alpha1.TargetCredentialRejected,
		unavailable: registryv1alpha1.TargetCredentialUnavailable,
		refused:     registryv1alpha1.TargetFailed,
	}
	if to, changes := told[f]; !changes || to == state {
		return 2
	}
	return 0
}

// judge says how a look ended.
func judge(err error, late bool) (found, string) {
	if err == nil {
		return answered, ""
	}
	if _, ok := errors.AsType[*kubeconfig.Error](err); ok {
		return refused, ""
	}
	if adviser, ok := errors.AsType[probe.Adviser](err); ok {
		return unavailable, adviser.Advice()
	}
	if late {
		return unconnected, ""
	}
	switch failure.Of(err) {
	case failure.NoHubToken:
		return unavailable, "The credential couldn't be read; the hub's log has the error."
	case failure.Unauthenticated:
		return rejected, ""
	case failure.Unreachable:
		return unconnected, ""
	case failure.Forbidden, failure.NotFound, failure.Rejected, failure.Unavailable, failure.Interrupted, failure.Unexpected:
		return unclear, ""
	default:
		return unclear, ""
	}
}

// enqueueLook notes the look that is due; nil when none is.
func (t *target) enqueueLook(row *registryv1alpha1.ClusterTarget, now time.Time) *look {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != nil || t.look != nil || now.Before(t.next) {
		return nil
	}
	t.look = &look{row: row.DeepCopy(), cancel: func() {}}
	return t.look
}

// look is a look from its turn to its end.
func (r *Reconciler) look(ctx context.Context, t *target, l *look) {
	box, cancel := context.WithTimeout(ctx, lookBox)
	defer cancel()
	if !t.lookBegins(l, cancel) {
		return
	}
	sight, err := r.Targets.Look(box, l.row)
	kind, advice := judge(err, errors.Is(box.Err(), context.DeadlineExceeded))
	cleared := ""
	if canary := left(l.row); kind == answered && canary != nil && deleteCanary(box, r.Targets, l.row, canary) == nil {
		cleared = canary.PodName
	}
	if kind != answered && !errors.Is(box.Err(), context.Canceled) {
		klog.FromContext(ctx).V(kind.verbosity(l.row.Status.State)).Info("A look at a target failed", "target", t.key, "found", kind, "err", cut(err))
	}
	t.looked(l, sight, kind, advice, cleared)
	if t.straggled() {
		r.Targets.Forget(t.uid)
	}
	r.rouse(ctx, t.key)
}

func (t *target) lookBegins(l *look, cancel context.CancelFunc) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.cancel = cancel
	return t.look == l
}

// looked keeps how a look ended, unless nobody waits for it any more.
func (t *target) looked(l *look, sight Sight, kind found, advice, cleared string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.look != l {
		return
	}
	switch kind {
	case unconnected:
		t.failures++
	case answered, rejected, unclear:
		t.failures = 0
	case refused, unavailable: // the target wasn't asked
	}
	l.sight, l.found, l.advice, l.cleared, l.failures = sight, kind, advice, cleared, t.failures
	t.look, t.lookEnd = nil, l
}
