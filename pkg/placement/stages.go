package placement

import (
	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// Reason says in one word why a cell was excluded. It's empty for one that
// wasn't.
type Reason string

// The reasons. There are no others.
const (
	OutsidePolicy Reason = "OutsidePolicy"

	Draining     Reason = "Draining"
	Dark         Reason = "Dark"
	NotDark      Reason = "NotDark"
	UnknownState Reason = "UnknownState"

	NeverReported Reason = "NeverReported"
	Stale         Reason = "Stale"
	NoCapacity    Reason = "NoCapacity"
	DoesNotFit    Reason = "DoesNotFit"
)

// Unreachable is no reason to exclude a cell, but to choose it last.
const Unreachable Reason = "Unreachable"

// Stage is the filter stage that the reason belongs to.
func (r Reason) Stage() v1alpha1.Stage {
	switch r {
	case "":
		return ""
	case OutsidePolicy:
		return v1alpha1.StagePermission
	case Draining, Dark, NotDark, UnknownState:
		return v1alpha1.StageState
	case NeverReported, Stale, NoCapacity, DoesNotFit:
		return v1alpha1.StageCapacity
	default:
		return v1alpha1.StagePermission
	}
}

// reason runs one cell through the three stages and returns the reason of the
// first that excludes it. It's what search does for 64 cells at a time, told
// for one: a test holds the two together.
func (q *question) reason(slot int) Reason {
	if !q.permitted.has(slot) {
		return OutsidePolicy
	}
	if !q.accepting.has(slot) {
		return reasonOfState(q.fleet.cells[slot].Spec.State, q.dark)
	}
	return q.reasonOfCapacity(slot)
}

// reasonOfState is why a cell in this state doesn't take a placement.
func reasonOfState(state registry.ClusterState, dark bool) Reason {
	switch {
	case state == registry.StateDraining:
		return Draining
	case state == registry.StateDark && !dark:
		return Dark
	case state == registry.StateLive && dark:
		return NotDark
	default:
		return UnknownState
	}
}

func (q *question) reasonOfCapacity(slot int) Reason {
	block, bit := q.view.Block(slot/64), uint64(1)<<(slot%64)
	if block.Fresh&bit == 0 {
		if health, _ := q.view.Health(slot); health == v1alpha1.CapacityUnknown {
			return NeverReported
		}
		return Stale
	}
	if block.Open&bit == 0 {
		return NoCapacity
	}
	if _, short := q.view.Shortage(slot, &q.demand); short {
		return DoesNotFit
	}
	return ""
}
