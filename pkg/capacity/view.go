package capacity

import (
	"math/bits"
	"time"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// View is the index at one moment. Until it's closed nobody else reads or
// writes the index, so that a decision and the reservation that follows from it
// are one step. A cell's slot is its rank among the names of the last Sync; the
// caller brings slots in range.
type View struct{ index *Index }

// At returns the index as it is now. The caller must close it, soon. The
// index's time never goes back: an earlier now than the last counts as the last.
func (ix *Index) At(now time.Time) View {
	ix.lock(now)
	return View{ix}
}

// Close lets others have the index.
func (v View) Close() { v.index.mu.Unlock() }

// Block returns the cells with slots from 64*i.
func (v View) Block(i int) *Block { return v.index.block(i) }

// Floor is at most the Score of any open cell of the block.
func (v View) Floor(b *Block, d *Demand) float64 { return b.least.with(d) }

// Score is how full an open cell would be in its fullest dimension with the
// demand placed: 1 is full.
func (v View) Score(slot int, d *Demand) float64 {
	if d.rare {
		return v.index.cells[slot].utilisation(d.amounts).Ratio
	}
	return v.index.pressure[slot].with(d)
}

// AtMost returns the open cells of block i, as bits, without those whose Score
// is surely above the limit. A demand for other resources than cpu, memory and
// pods may leave some of these in.
func (v View) AtMost(limit float64, i int, cells uint64, d *Demand) uint64 {
	block := v.index.pressure[i*64:]
	var atMost uint64
	for ; cells != 0; cells &= cells - 1 {
		bit := bits.TrailingZeros64(cells)
		if p := &block[bit]; p.worst <= limit && p.with(d) <= limit {
			atMost |= 1 << bit
		}
	}
	return atMost
}

// Utilisation is the Score with its dimension. It's unknown for a cell that
// isn't open.
func (v View) Utilisation(slot int, d *Demand) Utilisation {
	if !v.isOpen(slot) {
		return Utilisation{}
	}
	c := v.index.cells[slot]
	if len(d.amounts) == 0 {
		return c.fullest
	}
	return c.utilisation(d.amounts)
}

// Shortage returns what an open cell has too little of, if there is something.
func (v View) Shortage(slot int, d *Demand) (Shortage, bool) {
	return v.index.cells[slot].shortage(d.amounts)
}

// Health says what a cell's last report is worth, and when it was received.
func (v View) Health(slot int) (v1alpha1.CapacityHealth, time.Time) {
	c := v.index.cells[slot]
	return c.health(v.index.now), c.received
}

// Reserve holds the amounts on a cell.
func (v View) Reserve(slot int, amounts Amounts) Reservation {
	r := Reservation{Cell: v.index.names[slot], Amounts: amounts, At: v.index.wall}
	v.index.reserve(slot, r, r.At)
	return r
}

func (v View) isOpen(slot int) bool { return v.Block(slot/64).Open>>(slot%64)&1 == 1 }
