package placement

import (
	"cmp"
	"slices"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// fleet is the registered cells at one moment. It doesn't change. A cell's slot
// is its rank by name, here as in the index.
type fleet struct {
	cells  []*registry.Cluster
	names  []string
	hashes [][64]uint64 // of the names, by block

	takesLive, takesDark bitset // the cells whose state takes a placement
}

func newFleet(rows []*registry.Cluster) *fleet {
	cells := slices.Clone(rows)
	slices.SortStableFunc(cells, func(a, b *registry.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	cells = slices.CompactFunc(cells, func(a, b *registry.Cluster) bool { return a.Name == b.Name })

	f := &fleet{
		cells:     cells,
		names:     make([]string, len(cells)),
		hashes:    make([][64]uint64, (len(cells)+63)/64),
		takesLive: newBitset(len(cells)),
		takesDark: newBitset(len(cells)),
	}
	for slot, cell := range cells {
		f.names[slot] = cell.Name
		f.hashes[slot/64][slot%64] = hashOf(cell.Name)
		f.takesLive.put(slot, cell.Spec.State.AcceptsPlacement(false))
		f.takesDark.put(slot, cell.Spec.State.AcceptsPlacement(true))
	}
	return f
}

// accepting is the cells whose state takes a placement.
func (f *fleet) accepting(dark bool) bitset {
	if dark {
		return f.takesDark
	}
	return f.takesLive
}

// set is these cells, nil for none; names that aren't registered are left out.
func (f *fleet) set(names []string) bitset {
	if len(names) == 0 {
		return nil
	}
	set := newBitset(len(f.cells))
	for _, name := range names {
		if slot, registered := slices.BinarySearch(f.names, name); registered {
			set.put(slot, true)
		}
	}
	return set
}

// bitset is a set of slots, 64 to a word.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) put(slot int, in bool) {
	if in {
		b[slot/64] |= 1 << (slot % 64)
	}
}

// without is what is in b and not in other, which is as long.
func (b bitset) without(other bitset) bitset {
	rest := make(bitset, len(b))
	for i := range b {
		rest[i] = b[i] &^ other[i]
	}
	return rest
}

func (b bitset) has(slot int) bool { return b[slot/64]>>(slot%64)&1 == 1 }
