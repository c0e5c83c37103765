package hub

import (
	"sync/atomic"
	"time"
)

// warmup says whether this replica has heard enough of the fleet to rank it. A
// new replica knows no capacity, so every cell is Unknown to it: it must not
// answer for a fleet that it hasn't heard. Once warm it stays warm; capacity
// that goes stale later is the engine's matter.
type warmup struct {
	started time.Time
	// timeout is when a replica says that it is ready all the same: agents
	// report through the Service, which routes to ready replicas alone.
	timeout time.Duration
	// grace is how long after the timeout it waits for the last cells. By then
	// each living agent has had three chances, and a dead one must not hold up
	// the others.
	grace   time.Duration
	latched atomic.Bool
}

// warm reports whether placements may be decided. missing and reported say how
// many cells that should report haven't and have, and are asked only until the
// answer is yes.
func (w *warmup) warm(now time.Time, count func() (missing, reported int)) bool {
	if w.latched.Load() {
		return true
	}
	missing, reported := count()
	if missing == 0 || (reported > 0 && now.Sub(w.started) >= w.timeout+w.grace) {
		w.latched.Store(true)
		return true
	}
	return false
}

// ready reports whether the replica may take traffic: it is warm, or it has
// waited long enough.
func (w *warmup) ready(now time.Time, count func() (missing, reported int)) bool {
	return w.warm(now, count) || now.Sub(w.started) >= w.timeout
}
