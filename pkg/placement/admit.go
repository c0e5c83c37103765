package placement

import (
	"slices"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

// Admit returns the row of a cell that the caller names, for a decision that
// was made before: permission and state are checked as for a placement, and
// capacity isn't looked at. Whether the policy lets its callers name a cell at
// all is for the caller of Admit to know.
//
// It refuses with DarkNotPermitted; with CellChoiceNotPermitted, in the same
// words whether the cell is outside the policy or isn't registered; and with
// NoEligibleCells when the cell's state takes no such placement.
func (e *Engine) Admit(cell string, dark bool, p *Permission) (*registry.Cluster, *refusal.Refusal) {
	if refused := p.refuses(dark); refused != nil {
		return nil, refused
	}
	f := e.fleet.Load()
	slot, registered := slices.BinarySearch(f.names, cell)
	if !registered || !p.reach(f).has(slot) {
		return nil, refusal.New(refusal.CellChoiceNotPermitted, "policy %q permits no cell named %q", p.Policy, cell)
	}
	row := f.cells[slot]
	if !f.accepting(dark).has(slot) {
		return nil, refusal.New(refusal.NoEligibleCells, "cell %q takes no such placement: it is %s",
			cell, reasonOfState(row.Spec.State, dark).phrase())
	}
	return row, nil
}
