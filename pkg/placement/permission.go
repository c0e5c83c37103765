package placement

import (
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/labels"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

// Permission is what a policy lets its callers do. Make one per policy and keep
// it while the policy stays the same: it remembers the cells that it selects.
// The zero value permits no cell. It must not be changed after its first use.
type Permission struct {
	// Policy is the name of the policy.
	Policy string
	// Selector selects the permitted cells by the labels of their rows.
	Selector labels.Selector
	// AllowDark permits requests for a dark cell.
	AllowDark bool
	// Strategy is how one of several cells is chosen.
	Strategy registry.Strategy

	reached atomic.Pointer[reach]
}

// reach is the cells of a fleet that a permission selects. It keeps no former
// fleet in memory.
type reach struct {
	fleet weak.Pointer[fleet]
	cells bitset
}

// refuses says what speaks against a request whatever the cells are.
func (p *Permission) refuses(dark bool) *refusal.Refusal {
	if dark && !p.AllowDark {
		return refusal.New(refusal.DarkNotPermitted,
			"the request asks for a dark cell, which policy %q doesn't permit", p.Policy)
	}
	switch p.Strategy {
	case registry.StrategyLeastLoaded, registry.StrategyRoundRobin, registry.StrategySticky:
		return nil
	default:
		return refusal.New(refusal.PlacementUnavailable,
			"policy %q asks for strategy %q, which this replica doesn't know", p.Policy, p.Strategy)
	}
}

// reach returns the cells that the permission selects: once per fleet by
// asking the selector, in time linear in the number of cells, then from memory.
func (p *Permission) reach(f *fleet) bitset {
	if r := p.reached.Load(); r != nil && r.fleet.Value() == f {
		return r.cells
	}
	r := &reach{fleet: weak.Make(f), cells: newBitset(len(f.cells))}
	if p.Selector != nil {
		for slot, cell := range f.cells {
			r.cells.put(slot, p.Selector.Matches(labels.Set(cell.Labels)))
		}
	}
	p.reached.Store(r)
	return r.cells
}
