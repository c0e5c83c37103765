package probe

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/probe/contract"
)

// CanaryName is the name of a run's canary.
func CanaryName(runID string) string { return "cellcast-canary-" + runID }

// canary proves the way back: a pod that starts there, shows its token and
// reaches the hub.
func (p *probe) canary(ctx context.Context) finding {
	if before := p.failed(); before != nil {
		return skipped("Not started, because %s failed.", before.Name)
	}
	if p.spec.CanaryImage == "" {
		return failed("The hub has no --canary-image, so no target becomes Ready: ask its operator.")
	}
	if p.ingestURL() == "" || p.spec.Ingest.Audience == "" {
		return failed("The hub has no --external-url that pods could post to: ask its operator.")
	}
	name := CanaryName(p.spec.RunID)
	if err := p.progress.CanaryNamed(ctx, name); err != nil {
		return p.unrecorded(ctx, err)
	}
	pod, err := p.create(ctx, name)
	if err == nil && (pod.Name != name || pod.Namespace != p.spec.Target.Namespace || pod.UID == "") {
		err = errors.New("the API answered the creation of the canary with something else")
	}
	if err != nil {
		return p.deleted(ctx, name, "", p.refused(err))
	}
	return p.deleted(ctx, name, pod.UID, p.flight(ctx, pod))
}

// endsWithin is how long the canary of a run that was cut may take to end once it's
// deleted: the next one of the run has its name.
const endsWithin = 30 * time.Second

// create creates the canary, once there's none of its name.
func (p *probe) create(ctx context.Context, name string) (*corev1.Pod, error) {
	for until := time.Now().Add(endsWithin); ; {
		pod, err := p.api.CreatePod(ctx, p.pod(name))
		if !apierrors.IsAlreadyExists(err) || time.Now().After(until) || sleep(ctx, time.Second) != nil {
			return pod, err
		}
	}
}

// refused is why the target made no pod.
func (p *probe) refused(err error) finding {
	kind := failure.Of(err)
	if kind != failure.Forbidden && kind != failure.Rejected {
		return p.trouble(err, "create the canary pod")
	}
	var status apierrors.APIStatus // the target's: no other has these kinds
	said := "it gave no reason"
	if errors.As(err, &status) {
		said = clause(quote(status.Status().Message))
	}
	return failed("The target refused the canary pod: %s. Check in namespace %s that ServiceAccount %s exists, that the quota has room for a pod, "+
		"and what admission policies ask of one.", said, p.spec.Target.Namespace, contract.ServiceAccountName(p.spec.Target)).
		mendedBy(p.inNamespace("get", "serviceaccounts,resourcequotas,limitranges")).because(err)
}

const (
	// deleteWithin is how long a run tries to delete its canary, whether or not
	// its context has ended.
	deleteWithin = 30 * time.Second
	deleteTries  = 3
)

// deleted deletes the canary, and adds to what was found where it couldn't be.
func (p *probe) deleted(ctx context.Context, name string, uid types.UID, f finding) finding {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteWithin)
	defer cancel()
	var err error
	for try := range deleteTries {
		if try > 0 && sleep(ctx, time.Duration(try)*time.Second) != nil {
			break
		}
		if err = DeleteCanary(ctx, p.api, p.spec.Target.Namespace, name, uid); err == nil {
			p.progress.CanaryDeleted(ctx)
			return f
		}
		if !failure.Of(err).MayClear() {
			break
		}
	}
	f.message += " The canary pod " + name + " couldn't be deleted: delete it, or the hub does when it can."
	if f.result == registryv1alpha1.CheckPassed {
		f.result = registryv1alpha1.CheckWarning
	}
	if f.remedy == "" {
		f.remedy = p.inNamespace("delete", "pod", name)
	}
	return f.because(errors.Join(f.fault, err))
}

// DeleteCanary deletes a canary: the pod of this UID, or whichever has the name
// where the UID isn't known. One that is gone is deleted.
func DeleteCanary(ctx context.Context, api PodDeleter, namespace, name string, uid types.UID) error {
	err := api.DeletePod(ctx, namespace, name, uid)
	switch failure.Of(err) {
	case failure.NotFound:
		return nil
	case failure.Rejected:
		if apierrors.IsConflict(err) { // the name is another pod's by now
			return nil
		}
	}
	return err
}

const (
	// receiptWithin is how long a canary has, from its creation to the receipt.
	receiptWithin = 90 * time.Second
	// postWithin is how long it tries to post. It's shorter, so that it still can
	// say why it gave up.
	postWithin = 60 * time.Second
	lookEvery  = 2 * time.Second
	// settle is how long a receipt may take to be seen after the pod has ended well.
	settle = 10 * time.Second
)

// receipt is how the wait for the hub's receipt ended.
type receipt struct {
	err error
	// early says that the wait wasn't ended by its context.
	early bool
}

// flight waits for the canary's receipt, and watches the pod for what is wrong
// meanwhile.
func (p *probe) flight(ctx context.Context, pod *corev1.Pod) finding {
	if err := p.progress.CanaryCreated(ctx, pod.UID); err != nil {
		return p.unrecorded(ctx, err)
	}
	waiting, cancel := context.WithTimeout(ctx, receiptWithin)
	defer cancel()
	received := make(chan receipt, 1)
	go func() {
		err := p.progress.AwaitReceipt(waiting)
		received <- receipt{err, waiting.Err() == nil}
	}()
	seen := p.watch(waiting, pod, received)
	cancel()
	got := <-received
	switch {
	case got.err == nil:
		return passed("A canary pod started, proved who it is, and reached the hub.")
	case ctx.Err() != nil:
		return interrupted(got.err)
	case got.early:
		return p.unrecorded(ctx, got.err)
	default:
		return p.landed(seen)
	}
}

// watch looks at the pod until the wait has ended, or the receipt can't come any
// more. It leaves in received what is there.
func (p *probe) watch(waiting context.Context, pod *corev1.Pod, received chan receipt) sighting {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var seen sighting
	var since time.Time // of a pod that has ended well
	for {
		select {
		case got := <-received:
			received <- got
			return seen
		case <-waiting.Done():
			return seen
		case <-ticker.C:
		}
		now, err := p.api.GetPod(waiting, pod.Namespace, pod.Name)
		if waiting.Err() != nil {
			return seen
		}
		seen = seen.then(now, err, pod.UID)
		if seen.stage == endedWell && since.IsZero() {
			since = time.Now()
		}
		if seen.final || !since.IsZero() && time.Since(since) >= settle {
			return seen
		}
	}
}
