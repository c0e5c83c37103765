// Package capacity is the index of how full each registered cell is. It lives
// in memory, knows no client and no policy, and is told the time.
//
// Three things change it: a cell's report, a reservation for what was placed
// since, and time, after which a report no longer counts and a reservation
// ends. Time has no goroutine of its own: whoever reads the index brings the
// moment, and what that moment ends is ended first. So a stale report can't
// look fresh because some sweeper stands still.
//
// A report is refused unless it is sound, new, recent and about a registered
// cell; the former one then stays. Only registered cells are kept, which also
// bounds the index.
package capacity

import (
	"slices"
	"sync"
	"time"

	"cellcast.io/cellcast/pkg/refusal"
)

// maxAhead is how far a cell's clock may be ahead of the hub's.
const maxAhead = 30 * time.Second

// Options are the times of an index. A zero field has its default.
type Options struct {
	// Window is how long a report counts after it was received, and how old it
	// may be when it's received; 90 s by default, three heartbeats.
	Window time.Duration
	// Hold is how long a reservation lasts at most; 60 s by default, two
	// heartbeats. Those made within a 64th of it end together, with the last.
	Hold time.Duration
}

// Index is how full each registered cell is. It may be used by several
// goroutines at once.
type Index struct {
	window, hold time.Duration
	epoch        time.Time // moments count from here

	mu    sync.Mutex
	wall  time.Time      // the time that it was told last
	now   moment         // the latest of all; it never goes back
	names []string       // the registered cells, sorted
	slots map[string]int // the rank of each in names

	// What follows goes by slot; blocks by 64 slots.
	cells    []*cell
	pressure []pressure
	due      []moment // when time alone next changes the cell
	blocks   []Block
}

// moment is a time, in nanoseconds since the index was made. It follows the
// monotonic clock where the times that it's made from do.
type moment int64

// New returns an index without cells.
func New(options Options, now time.Time) *Index {
	ix := &Index{window: 90 * time.Second, hold: 60 * time.Second, epoch: now}
	if options.Window > 0 {
		ix.window = options.Window
	}
	if options.Hold > 0 {
		ix.hold = options.Hold
	}
	return ix
}

// Receipt is what a reporter learns of a report that was taken.
type Receipt struct {
	// ReceivedAt is the hub's time. The report's age counts from here.
	ReceivedAt time.Time
	// StaleAt is when the report stops counting unless another one follows.
	StaleAt time.Time
}

// Observe takes a cell's report. It refuses, with InvalidRequest, one about a
// cell that isn't registered, one whose sequence doesn't exceed that of the
// last report taken, and one that was taken longer ago than the window or more
// than 30 seconds in the future; the cell's last report then stands.
func (ix *Index) Observe(name string, r Report, now time.Time) (Receipt, *refusal.Refusal) {
	ix.lock(now)
	defer ix.mu.Unlock()

	slot, registered := ix.slots[name]
	if !registered {
		return Receipt{}, refusal.Invalid("metadata.name", "cell %q is not registered", name)
	}
	c := ix.cells[slot]
	switch age := now.Sub(r.observedAt); {
	case r.sequence <= c.report.sequence:
		return Receipt{}, refusal.Invalid("spec.sequence",
			"%d doesn't exceed %d, that of the last report: this one is a replay", r.sequence, c.report.sequence)
	case age > ix.window:
		return Receipt{}, refusal.Invalid("spec.observedAt",
			"is %s ago and a report counts for %s: send a new one, or set the cell's clock", age.Round(time.Second), ix.window)
	case age < -maxAhead:
		return Receipt{}, refusal.Invalid("spec.observedAt",
			"is %s in the future and at most %s is taken: set the cell's clock", (-age).Round(time.Second), maxAhead)
	}
	ix.settle(slot)
	observed := r.observedAt
	if observed.After(now) {
		observed = now
	}
	c.placed.absorb(batchOf(observed, ix.hold), r.growth(&c.report))
	c.report, c.received, c.stale = r, now, ix.now+moment(ix.window)
	ix.update(slot)
	return Receipt{ReceivedAt: now, StaleAt: now.Add(ix.window)}, nil
}

// Sync makes these the registered cells. What is known of a cell that stays is
// kept, everything about one that goes is forgotten. The slots of a View go by
// the rank of the names, so then, if not nil, runs before anyone can look at
// the index again. It takes time linear in the number of cells, unless the
// names are those that the index has.
func (ix *Index) Sync(names []string, then func()) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if !slices.Equal(names, ix.names) {
		ix.rebuild(names)
	}
	if then != nil {
		then()
	}
}

func (ix *Index) rebuild(names []string) {
	cells, slots := make([]*cell, len(names)), make(map[string]int, len(names))
	for slot, name := range names {
		slots[name] = slot
		if old, known := ix.slots[name]; known {
			cells[slot] = ix.cells[old]
		} else {
			cells[slot] = &cell{}
		}
	}
	ix.names, ix.slots, ix.cells = names, slots, cells
	ix.pressure = make([]pressure, len(names))
	ix.due = make([]moment, len(names))
	ix.blocks = make([]Block, (len(names)+63)/64)
	for slot := range cells {
		ix.update(slot)
	}
}
