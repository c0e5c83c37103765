package capacity

import (
	"slices"
	"time"
)

// Reservation is what was placed on a cell and isn't in its reports yet. It's
// a plain value: a replica tells its peers of a reservation by handing it over.
type Reservation struct {
	// Cell is the name of the cell.
	Cell string
	// Amounts are what was placed.
	Amounts Amounts
	// At is when, by the clock of the replica that placed it.
	At time.Time
}

// ledger holds what was placed on one cell, until it's in the reports or has
// been held long enough. Reservations that were made within a 64th of the
// holding time share an entry and end with the last of them, so that a ledger
// has some seventy entries at most, however many placements there are, and
// still knows of every one.
type ledger []entry // the oldest first

// entry is what was placed within one batch.
type entry struct {
	batch   batch
	until   moment
	amounts Amounts
}

// batch is a 64th of the holding time, counted from 1970, so that all replicas
// find a reservation in the same one.
type batch int64

const batchesPerHold = 64

func batchOf(t time.Time, hold time.Duration) batch {
	return batch(t.UnixNano() / max(1, int64(hold/batchesPerHold)))
}

// add holds the amounts until the given moment.
func (l *ledger) add(b batch, until moment, amounts Amounts) {
	i, found := slices.BinarySearchFunc(*l, b, byBatch)
	if !found {
		*l = slices.Insert(*l, i, entry{batch: b})
	}
	e := &(*l)[i]
	e.until = max(e.until, until)
	e.amounts.add(amounts)
}

// release takes back what is left of the amounts.
func (l *ledger) release(b batch, amounts Amounts) {
	if i, found := slices.BinarySearchFunc(*l, b, byBatch); found {
		amounts = slices.Clone(amounts)
		(*l)[i].amounts.cancel(&amounts)
	}
	l.sweep()
}

// absorb takes off what a report shows to have arrived: the growth of what is
// requested, off the oldest entries first, of those before the given batch. So
// pods count once: as a reservation until a report shows them, then as part of
// the report, also where they arrive in several reports. Growth that has
// another cause ends a reservation early, and the cell then counts as what it
// reports; pods that leave at the same time hide growth, and the reservation
// then lasts its time.
func (l *ledger) absorb(before batch, growth Amounts) {
	for i := range *l {
		if e := &(*l)[i]; e.batch < before {
			e.amounts.cancel(&growth)
		}
	}
	l.sweep()
}

// expire ends what has been held long enough.
func (l *ledger) expire(now moment) {
	*l = slices.DeleteFunc(*l, func(e entry) bool { return e.until <= now })
}

func (l *ledger) sweep() {
	*l = slices.DeleteFunc(*l, func(e entry) bool { return len(e.amounts) == 0 })
}

// sum adds what is held to the amounts.
func (l ledger) sum(to Amounts) Amounts {
	for _, e := range l {
		to.add(e.amounts)
	}
	return to
}

// next is when the next entry ends.
func (l ledger) next() moment {
	next := never
	for _, e := range l {
		next = min(next, e.until)
	}
	return next
}

func byBatch(e entry, b batch) int { return int(e.batch - b) }
