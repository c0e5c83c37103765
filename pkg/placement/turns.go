package placement

import (
	"slices"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// maxTurns bounds turns against a long history of policies.
const maxTurns = 10_000

// turns is the cell that RoundRobin took last, by the name of the policy. Going
// on from a cell, and not from a count, gives each eligible cell one turn per
// round, also beside cells that are passed over and when cells come or go.
type turns map[string]string

// next is the slot after the last one: that cell may have left since.
func (t turns) next(p *Permission, f *fleet) int {
	last, known := t[p.Policy]
	if !known {
		return 0
	}
	slot, found := slices.BinarySearch(f.names, last)
	if found {
		slot++
	}
	return slot
}

// took notes that a cell had its turn.
func (t turns) took(p *Permission, cell string) {
	if p.Strategy != registry.StrategyRoundRobin {
		return
	}
	if len(t) >= maxTurns {
		clear(t)
	}
	t[p.Policy] = cell
}
