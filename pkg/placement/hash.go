package placement

// hashOf is the FNV-1a hash of a name, with its bits stirred so that names that
// differ in the last digit differ everywhere. All replicas, now and later,
// must agree on it: it decides where Sticky keeps a workload.
func hashOf(name string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// taste is what a workload ranks cells by: its hash, made odd.
type taste uint64

func tasteOf(workload string) taste { return taste(hashOf(workload) | 1) }

// rank is how much the workload prefers a cell, by the hash of its name. This
// is rendezvous hashing: the rank doesn't depend on other cells, so when the
// preferred cell leaves, its workloads spread over the rest and no other moves.
// An odd factor permutes the 64-bit numbers, and which of two random ones is
// then the larger is as good as random.
func (t taste) rank(cell uint64) uint64 { return uint64(t) * cell }

// above reports whether any of 64 cells has a higher rank. It's the innermost
// loop where thousands of cells tie, and worth its shape.
func (t taste) above(rank uint64, cells *[64]uint64) bool {
	for i := 0; i < 64; i += 4 {
		if t.rank(cells[i]) > rank || t.rank(cells[i+1]) > rank ||
			t.rank(cells[i+2]) > rank || t.rank(cells[i+3]) > rank {
			return true
		}
	}
	return false
}
