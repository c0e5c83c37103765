package cell

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"cellcast.io/cellcast/pkg/cell/failure"
)

const (
	// failuresToAil is how many answers in a row that it can't serve make a cell
	// one that is better not chosen.
	failuresToAil = 3
	// ailsFor is for how long, if nobody asks it meanwhile.
	ailsFor = 10 * time.Second
)

// ailment remembers that a cell answers, and answers that it can't serve: its
// store is away, say. It's asked as before, for that may be one request's fault,
// but where to place something there is better known.
type ailment struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	failures int
	until    time.Time
}

// note takes in how a call ended. changed says that the cell has fallen ill or
// recovered, and ill which of the two.
func (a *ailment) note(err error) (ill, changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		changed = a.failures >= failuresToAil
		a.failures, a.until = 0, time.Time{}
		return false, changed
	case failure.Of(err) != failure.Unavailable:
		return false, false // another fault says nothing of this one
	}
	if a.failures++; a.failures < failuresToAil {
		return false, false
	}
	a.until = a.clock.Now().Add(ailsFor)
	return true, true
}

// lasts reports whether the cell is better not chosen now.
func (a *ailment) lasts() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clock.Now().Before(a.until)
}
