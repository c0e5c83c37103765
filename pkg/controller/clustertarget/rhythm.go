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
	r.sourceTried = unavailable
	r.next = now.Add(jittered(wait))
}

// jittered is the wait, give or take a tenth.
func jittered(wait time.Duration) time.Duration {
	return wait - wait/10 + rand.N(wait/5+1) //nolint:gosec // no secret
}
