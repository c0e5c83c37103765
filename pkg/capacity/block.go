package capacity

import (
	"math/bits"
	"time"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// Block is 64 cells in one look: a decision over thousands of cells asks first
// whether any cell of a block can matter, and then for the cell.
type Block struct {
	// Fresh has bit i set when the report of the block's i-th cell counts.
	Fresh uint64
	// Open has it set when the cell also has a node that takes pods.
	Open uint64

	least pressure // at most that of each open cell, in each field
	until moment   // least and the bits hold before it
}

// lock locks the index and moves it on to now.
func (ix *Index) lock(now time.Time) {
	ix.mu.Lock()
	ix.wall = now
	ix.now = max(ix.now, moment(now.Sub(ix.epoch)))
}

// block returns a block as it is now.
func (ix *Index) block(i int) *Block {
	b := &ix.blocks[i]
	if ix.now >= b.until {
		ix.refresh(i)
	}
	return b
}

// refresh brings a block up to date.
func (ix *Index) refresh(i int) {
	b, first := &ix.blocks[i], i*64
	next := never
	for slot := first; slot < min(first+64, len(ix.cells)); slot++ {
		ix.settle(slot)
		next = min(next, ix.due[slot])
	}
	b.least, b.until = boundless(), next
	for open := b.Open; open != 0; open &= open - 1 {
		b.least.lower(&ix.pressure[first+bits.TrailingZeros64(open)])
	}
}

// settle brings a cell up to date where time has changed it.
func (ix *Index) settle(slot int) {
	if ix.now >= ix.due[slot] {
		ix.update(slot)
	}
}

// update derives everything that is derived from a cell anew.
func (ix *Index) update(slot int) {
	c, b, bit := ix.cells[slot], &ix.blocks[slot/64], uint64(1)<<(slot%64)
	c.placed.expire(ix.now)
	c.reserved = c.placed.sum(c.reserved[:0])

	b.Fresh, b.Open = b.Fresh&^bit, b.Open&^bit
	if c.health(ix.now) == v1alpha1.CapacityFresh {
		b.Fresh |= bit
		if c.report.takesPods() {
			b.Open |= bit
			c.fullest = c.utilisation(nil)
			ix.pressure[slot] = c.pressure()
		}
	}
	ix.due[slot] = c.due(ix.now)
	b.until = 0 // least is to be found again
}
