package capacity

import "time"

// Reserve holds what another replica has placed. It does nothing for a cell
// that isn't registered or a reservation whose time is over.
func (ix *Index) Reserve(r Reservation, now time.Time) {
	ix.lock(now)
	defer ix.mu.Unlock()
	if slot, registered := ix.slots[r.Cell]; registered {
		ix.reserve(slot, r, now)
	}
}

// Release ends a reservation at once, because nothing will come of it. It must
// be called once at most; what is in the reports already, or has ended, isn't
// taken back again.
func (ix *Index) Release(r Reservation, now time.Time) {
	ix.lock(now)
	defer ix.mu.Unlock()
	if slot, registered := ix.slots[r.Cell]; registered {
		ix.cells[slot].placed.release(ix.batchFor(r, now), r.Amounts)
		ix.update(slot)
	}
}

func (ix *Index) reserve(slot int, r Reservation, now time.Time) {
	age := max(0, now.Sub(r.At))
	ix.cells[slot].placed.add(ix.batchFor(r, now), ix.now+moment(ix.hold-age), r.Amounts)
	ix.update(slot)
}

// batchFor is the batch of the reservation; a peer's clock may be ahead.
func (ix *Index) batchFor(r Reservation, now time.Time) batch {
	if r.At.After(now) {
		return batchOf(now, ix.hold)
	}
	return batchOf(r.At, ix.hold)
}
