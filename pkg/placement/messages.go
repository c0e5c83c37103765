package placement

import (
	"fmt"
	"strings"
	"time"

	"cellcast.io/cellcast/pkg/refusal"
)

// message says the reason of an exclusion in a sentence.
func (t *Trace) message(l *line) string {
	switch l.reason {
	case "":
		return ""
	case OutsidePolicy:
		return fmt.Sprintf("policy %q doesn't select this cell", t.policy)
	case Draining:
		return "the cell is DRAINING and takes no placement"
	case Dark:
		return "the cell is DARK and takes only placements that ask for a dark cell"
	case NotDark:
		return "the request asks for a dark cell and this one is LIVE"
	case UnknownState:
		return "the cell is in a state that this replica doesn't know"
	case NeverReported:
		return "this replica has no report of the cell's capacity"
	case Stale:
		return fmt.Sprintf("the last report is %s old and no longer counts", t.age(l).Truncate(time.Second))
	case NoCapacity:
		return "the cell has no node that takes pods"
	case DoesNotFit:
		return l.short.String()
	default:
		return "the cell was excluded"
	}
}

// refuse says why no cell was found. It asks the stages of each permitted cell,
// which a search that finds one needn't.
func (q *question) refuse(policy string) *refusal.Refusal {
	count := map[Reason]int{}
	permitted := 0
	for slot := range q.fleet.cells {
		if reason := q.reason(slot); reason != OutsidePolicy {
			count[reason]++
			permitted++
		}
	}
	unknown := count[NeverReported] + count[Stale]
	full := count[NoCapacity] + count[DoesNotFit]
	switch {
	case permitted == 0:
		return refusal.New(refusal.NoPermittedCells, "policy %q permits no registered cell", policy)
	case unknown > 0 && full == 0:
		return refusal.New(refusal.CapacityUnknown,
			"no cell that policy %q permits and that takes placements has a fresh capacity report: %s", policy, tally(count))
	default:
		return refusal.New(refusal.NoEligibleCells,
			"no cell that policy %q permits takes this placement: %s", policy, tally(count))
	}
}

// tally is how many cells each reason excluded, such as "2 draining, 1 dark".
func tally(count map[Reason]int) string {
	var parts []string
	for _, reason := range []Reason{Draining, Dark, NotDark, UnknownState, NeverReported, Stale, NoCapacity, DoesNotFit} {
		if n := count[reason]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, reason.phrase()))
		}
	}
	return strings.Join(parts, ", ")
}

// phrase is what a number of cells are.
func (r Reason) phrase() string {
	switch r {
	case Draining:
		return "draining"
	case Dark:
		return "dark"
	case NotDark:
		return "not dark"
	case UnknownState:
		return "in an unknown state"
	case NeverReported:
		return "never reported"
	case Stale:
		return "stale"
	case NoCapacity:
		return "without a node that takes pods"
	case DoesNotFit:
		return "without room for the request"
	default:
		return "excluded"
	}
}
