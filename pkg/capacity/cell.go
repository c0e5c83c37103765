package capacity

import (
	"math"
	"time"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// cell is what the index knows of one registered cell.
type cell struct {
	report   Report    // the last one taken; the zero value before the first
	received time.Time // zero before the first
	stale    moment    // when the report stops counting
	placed   ledger

	// What follows is derived, by Index.update.
	reserved Amounts     // the sum of placed
	fullest  Utilisation // with nothing more; kept only while the cell is open
}

// health is computed from the time of the question, whenever it's asked.
func (c *cell) health(now moment) v1alpha1.CapacityHealth {
	switch {
	case c.received.IsZero():
		return v1alpha1.CapacityUnknown
	case now >= c.stale:
		return v1alpha1.CapacityStale
	default:
		return v1alpha1.CapacityFresh
	}
}

// utilisation is how full the cell would be with more placed on it. The worst
// dimension counts, not the mean: a cell with 95 % of its memory given away is
// nearly full, whatever its cpu says.
func (c *cell) utilisation(more Amounts) Utilisation {
	var worst Utilisation
	for i := range c.report.dimensions {
		d := &c.report.dimensions[i]
		ratio := ratio(c.load(d), d.allocatable) + increase(float64(more.of(d.resource)), perUnit(d.allocatable))
		if worst.Resource == "" || ratio > worst.Ratio {
			worst = Utilisation{d.resource, ratio}
		}
	}
	return worst
}

// shortage returns what the cell has too little of for the amounts. Only the
// resources that are asked for count: a cell that is over-committed in another
// still has room for them.
func (c *cell) shortage(asked Amounts) (Shortage, bool) {
	for _, a := range asked {
		d, known := c.report.dimension(a.Resource)
		if !known {
			return Shortage{Resource: a.Resource, Asked: a.Value}, true
		}
		if free := d.allocatable - c.load(&d); a.Value > free {
			return Shortage{a.Resource, a.Value, max(0, free), d.allocatable}, true
		}
	}
	return Shortage{}, false
}

// load is what is given away of a dimension.
func (c *cell) load(d *dimension) int64 {
	return saturatingSum(d.requested, c.reserved.of(d.resource))
}

// due is when time alone next changes what the cell counts for.
func (c *cell) due(now moment) moment {
	next := c.placed.next()
	if c.health(now) == v1alpha1.CapacityFresh {
		next = min(next, c.stale)
	}
	return next
}

// These three are the only arithmetic on utilisation. Scores are compared bit
// by bit, so every place must round in the same way; the conversion keeps the
// compiler from fusing a multiplication with the addition that follows it.
func ratio(load, allocatable int64) float64  { return float64(load) / float64(allocatable) }
func perUnit(allocatable int64) float64      { return 1 / float64(allocatable) }
func increase(more, perUnit float64) float64 { return float64(more * perUnit) }

// never is a moment that doesn't come.
const never = moment(math.MaxInt64)
