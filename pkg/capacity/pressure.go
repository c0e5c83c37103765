package capacity

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// core returns the resources that every cell with a node has.
func core() [coreCount]corev1.ResourceName {
	return [coreCount]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}
}

const coreCount = 3

// pressure is a cell reduced to what a score needs.
type pressure struct {
	worst   float64            // utilisation of the fullest dimension
	used    [coreCount]float64 // utilisation of the core dimensions
	perUnit [coreCount]float64 // what one unit more adds to them
}

// boundless is above every pressure.
func boundless() pressure {
	infinity := math.Inf(1)
	infinities := [coreCount]float64{infinity, infinity, infinity}
	return pressure{infinity, infinities, infinities}
}

func (c *cell) pressure() pressure {
	p := pressure{worst: c.fullest.Ratio}
	for i, name := range core() {
		d, _ := c.report.dimension(name)
		p.used[i], p.perUnit[i] = ratio(c.load(&d), d.allocatable), perUnit(d.allocatable)
	}
	return p
}

// with is the utilisation once the demand is placed, as far as the core
// resources go. It never falls where a field of p rises, so that for the least
// of several pressures it's at most what it is for any of them.
func (p *pressure) with(d *Demand) float64 {
	u := p.worst
	for i := range d.core {
		if x := p.used[i] + increase(d.core[i], p.perUnit[i]); x > u {
			u = x
		}
	}
	return u
}

// lower lowers each field of p to that of q, where that is less.
func (p *pressure) lower(q *pressure) {
	if q.worst < p.worst {
		p.worst = q.worst
	}
	for i := range coreCount {
		if q.used[i] < p.used[i] {
			p.used[i] = q.used[i]
		}
		if q.perUnit[i] < p.perUnit[i] {
			p.perUnit[i] = q.perUnit[i]
		}
	}
}
