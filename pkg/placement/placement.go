// Package placement decides where a workload goes. It is pure: it knows no
// client and is told the time.
//
// Three stages filter, always in this order: permission, state, capacity. A
// cell is recorded at the first that excludes it, so that nobody learns the
// state or the utilisation of a cell that they may not reach. Only over the
// cells that are left does the policy's strategy choose. A cell that hasn't
// reported lately is excluded, never taken for empty.
package placement

import (
	"time"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/refusal"
)

// Request is the question.
type Request struct {
	// Workload is the name of what is to be placed.
	Workload string
	// Dark asks for a DARK cell and no other.
	Dark bool
	// Resources are what the workload needs. With some, only a cell with room
	// for them is chosen. With none, every cell has room, and cells are
	// compared as they are.
	Resources capacity.Amounts
	// Explain asks for the trace.
	Explain bool
	// Unreachable are cells that can't be asked for a credential now. One of them
	// is chosen only where no other is left: it looks emptier with every mint
	// that fails, and would draw every placement to itself.
	Unreachable []string
}

// Decision is the answer.
type Decision struct {
	// Cell is the row of the chosen cell, nil with a refusal. It is shared: it
	// must not be changed.
	Cell *registry.Cluster
	// Confidence is degraded when a permitted cell whose state takes the
	// placement was left out because its report is stale or never came.
	Confidence v1alpha1.Confidence
	// Utilisation is how full the cell is with the request placed.
	Utilisation capacity.Utilisation
	// Reservation is what Place holds on the cell. Release it when nothing
	// comes of the placement.
	Reservation capacity.Reservation
	// Trace is why each cell was or wasn't chosen. It comes with a refusal too,
	// and is nil where the request doesn't ask for it or no cell was looked at.
	Trace *Trace
}

// Place decides as Decide does, and reserves on the chosen cell what the
// request needs, or the default where it doesn't say. Both are one step: the
// next decision already sees it.
func (e *Engine) Place(r Request, p *Permission, now time.Time) (Decision, *refusal.Refusal) {
	return e.decide(r, p, now, true)
}

// Decide decides and changes nothing. The same cells, capacity, request and
// permission give the same decision, in whatever order the cells came; with
// RoundRobin the last placement counts too.
//
// It refuses with DarkNotPermitted before it looks at any cell, then with
// NoPermittedCells; with CapacityUnknown when every permitted cell whose state
// takes the placement is stale or never reported; and with NoEligibleCells
// otherwise, also when some cells are too full and the rest unknown.
func (e *Engine) Decide(r Request, p *Permission, now time.Time) (Decision, *refusal.Refusal) {
	return e.decide(r, p, now, false)
}

func (e *Engine) decide(r Request, p *Permission, now time.Time, reserve bool) (Decision, *refusal.Refusal) {
	if refused := p.refuses(r.Dark); refused != nil {
		return Decision{}, refused
	}
	before := e.fleet.Load()
	p.reach(before) // remembered, so that nobody waits for it below
	unreachable := before.set(r.Unreachable)

	view := e.index.At(now)
	defer view.Close()
	f := e.fleet.Load()
	q := question{
		fleet:     f,
		view:      view,
		strategy:  p.Strategy,
		permitted: p.reach(f),
		accepting: f.accepting(r.Dark),
		dark:      r.Dark,
		demand:    capacity.NewDemand(r.Resources),
		taste:     tasteOf(r.Workload),
		turn:      e.turns.next(p, f),
	}
	if q.unreachable = unreachable; f != before {
		q.unreachable = f.set(r.Unreachable)
	}
	found := q.searchReachable()
	var d Decision
	if r.Explain {
		d.Trace = q.explain(found.slot, p.Policy, now)
	}
	if found.slot == nowhere {
		return d, q.refuse(p.Policy)
	}
	d.Cell = f.cells[found.slot]
	d.Confidence = found.confidence()
	d.Utilisation = view.Utilisation(found.slot, &q.demand)
	if reserve {
		d.Reservation = view.Reserve(found.slot, e.needs(r))
		e.turns.took(p, d.Cell.Name)
	}
	return d, nil
}
