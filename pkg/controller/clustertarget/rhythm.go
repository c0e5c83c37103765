package clustertarget

import (
	"math/rand/v2"
	"time"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

const (
	// failuresToUnreachable is how many looks in a row must fail to connect.
	failuresToUnreachable = 3
	// again is how soon a look follows one that failed to connect.
	again = 5 * time.Second
	// halfOpen is how soon a target that is Unreachable is looked at for the first
	// time; each further wait is twice as long, up to halfOpenMost.
	halfOpen, halfOpenMost = 30 * time.Second, 5 * time.Minute
	// sourceAgain is how soon a source that can't be read is tried once more.
	// After that it waits for the rescan.
	sourceAgain = 30 * time.Second
	// repeatMost is the longest wait between two runs of a target that came back and
	// doesn't pass. The first is the time to the next look, each further one twice as
	// long: nodes that take pods and never end them collect canaries.
	repeatMost = time.Hour
)

// rhythm says when a target is looked at next.
type rhythm struct {
	next time.Time
	// failures counts the looks in a row that failed to connect.
	failures int
	// backoff is the last wait of a target that is Unreachable.
	backoff time.Duration
	// sourceTried says that the source was tried again.
	sourceTried bool
	// repeat is when a target that came back may be probed once more, and repeatWait
	// the wait after that.
	repeat     time.Time
	repeatWait time.Duration
}

// newRhythm spreads the first looks of a process, which may find very many
// targets, over a tenth of the time between two.
func newRhythm(now time.Time, rescan time.Duration) rhythm {
	return rhythm{next: now.Add(rand.N(rescan/10 + 1))} //nolint:gosec // no secret
}

// schedule says when to look next at a target in this state.
func (r *rhythm) schedule(now time.Time, state registryv1alpha1.TargetState, rescan time.Duration) {
	wait := rescan
	unreachable := state == registryv1alpha1.TargetUnreachable
	unavailable := state == registryv1alpha1.TargetCredentialUnavailable
	switch {
	case unreachable:
		r.backoff = min(max(2*r.backoff, halfOpen), halfOpenMost)
		wait = r.backoff
	case r.failures > 0:
		wait = min(again, rescan)
	case unavailable && !r.sourceTried:
		wait = min(sourceAgain, rescan)
	}
	if !unreachable {
		r.backoff = 0
	}
	if state != registryv1alpha1.TargetFailed {
		r.repeat, r.repeatWait = time.Time{}, 0
	}
	r.sourceTried = unavailable
	r.next = now.Add(jittered(wait))
}

// repeats reports whether it's time to probe a target once more that came back and
// didn't pass, and if so, waits longer for the next time.
func (t *target) repeats(now time.Time, rescan time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.repeat) {
		return false
	}
	t.repeatWait = min(max(2*t.repeatWait, rescan), repeatMost)
	t.repeat = now.Add(t.repeatWait)
	return true
}

// jittered is the wait, give or take a tenth.
func jittered(wait time.Duration) time.Duration {
	return wait - wait/10 + rand.N(wait/5+1) //nolint:gosec // no secret
}
