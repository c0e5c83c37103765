package placement

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/refusal"
)

// reference decides in the plainest way: one list, one stage after the other.
// The engine must agree with it.
type reference struct {
	now   time.Time
	cells []*referenceCell
	turns map[string]string
}

// referenceCell is a cell with all that is known of it, in thousandths of a
// core and whole units.
type referenceCell struct {
	name, env              string
	state                  registry.ClusterState
	reported               time.Time // zero before the first report
	allocatable, requested map[corev1.ResourceName]int64
	placed                 []capacity.Reservation
}

// answer is a decision in plain values.
type answer struct {
	Cell       string
	Refusal    refusal.Code
	Confidence v1alpha1.Confidence
	Reasons    map[string]Reason // of every cell
}

func (f *reference) decide(r Request, p *Permission) answer {
	a := answer{Reasons: map[string]Reason{}}
	if r.Dark && !p.AllowDark {
		return answer{Refusal: refusal.DarkNotPermitted}
	}
	var eligible []*referenceCell
	permitted, unknown, full := 0, 0, 0
	for _, c := range f.cells {
		reason := f.reason(c, r, p)
		a.Reasons[c.name] = reason
		switch reason {
		case "":
			eligible = append(eligible, c)
		case NeverReported, Stale:
			unknown++
		case NoCapacity, DoesNotFit:
			full++
		}
		if reason != OutsidePolicy {
			permitted++
		}
	}
	switch {
	case permitted == 0:
		a.Refusal = refusal.NoPermittedCells
	case len(eligible) == 0 && unknown > 0 && full == 0:
		a.Refusal = refusal.CapacityUnknown
	case len(eligible) == 0:
		a.Refusal = refusal.NoEligibleCells
	default:
		a.Cell = f.choose(eligible, r, p)
		a.Confidence = v1alpha1.ConfidenceHigh
		if unknown > 0 {
			a.Confidence = v1alpha1.ConfidenceDegraded
		}
	}
	return a
}

func (f *reference) reason(c *referenceCell, r Request, p *Permission) Reason {
	if !p.Selector.Matches(labels.Set{"env": c.env}) {
		return OutsidePolicy
	}
	switch {
	case c.state == registry.StateDraining:
		return Draining
	case c.state != registry.StateLive && c.state != registry.StateDark:
		return UnknownState
	case r.Dark && c.state != registry.StateDark:
		return NotDark
	case !r.Dark && c.state == registry.StateDark:
		return Dark
	case c.reported.IsZero():
		return NeverReported
	case f.now.Sub(c.reported) >= 90*time.Second:
		return Stale
	case len(c.allocatable) == 0:
		return NoCapacity
	}
	for _, a := range r.Resources {
		if f.load(c, a.Resource)+a.Value > c.allocatable[a.Resource] {
			return DoesNotFit
		}
	}
	return ""
}

// choose sorts the eligible cells, the best first.
func (f *reference) choose(eligible []*referenceCell, r Request, p *Permission) string {
	slices.SortFunc(eligible, func(a, b *referenceCell) int { return strings.Compare(a.name, b.name) })
	if p.Strategy == registry.StrategyRoundRobin {
		for _, c := range eligible {
			if c.name > f.turns[p.Policy] {
				return c.name
			}
		}
		return eligible[0].name
	}
	rank := func(c *referenceCell) uint64 { return tasteOf(r.Workload).rank(hashOf(c.name)) }
	slices.SortStableFunc(eligible, func(a, b *referenceCell) int {
		x, y := 0.0, 0.0
		if p.Strategy == registry.StrategyLeastLoaded {
			x, y = f.utilisation(a, r), f.utilisation(b, r)
		}
		switch {
		case x < y, x == y && rank(a) > rank(b):
			return -1
		case x > y, rank(a) < rank(b):
			return 1
		default:
			return 0
		}
	})
	return eligible[0].name
}

func (f *reference) utilisation(c *referenceCell, r Request) float64 {
	worst := 0.0
	for name, allocatable := range c.allocatable {
		if allocatable == 0 {
			continue
		}
		more := 0.0
		for _, a := range r.Resources {
			if a.Resource == name {
				more = float64(a.Value)
			}
		}
		worst = max(worst, float64(f.load(c, name))/float64(allocatable)+more*(1/float64(allocatable)))
	}
	return worst
}

// load is what is requested and what is reserved.
func (f *reference) load(c *referenceCell, name corev1.ResourceName) int64 {
	load := c.requested[name]
	for _, r := range c.placed {
		for _, a := range r.Amounts {
			if a.Resource == name && f.now.Sub(r.At) < time.Minute {
				load += a.Value
			}
		}
	}
	return load
}

// took notes a placement.
func (f *reference) took(p *Permission, r capacity.Reservation) {
	for _, c := range f.cells {
		if c.name == r.Cell {
			c.placed = append(c.placed, r)
		}
	}
	if p.Strategy == registry.StrategyRoundRobin {
		f.turns[p.Policy] = r.Cell
	}
}
