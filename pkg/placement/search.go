package placement

import (
	"math"
	"math/bits"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// question is a request together with everything that answers it.
type question struct {
	fleet     *fleet
	view      capacity.View
	strategy  registry.Strategy
	permitted bitset
	accepting bitset
	// unreachable is nil where every cell can be reached.
	unreachable bitset
	dark        bool
	demand      capacity.Demand
	taste       taste
	turn        int // RoundRobin: the slot to begin at
}

// found is what a search ends with.
type found struct {
	slot    int
	score   float64
	rank    uint64
	leftOut bool // a permitted, accepting cell was left out as unknown
}

// nowhere is the slot of no cell.
const nowhere = -1

// searchReachable is search, except that a cell that can't be reached is taken
// only where no other is left.
func (q *question) searchReachable() found {
	best := q.search()
	if q.unreachable == nil || best.slot == nowhere || !q.unreachable.has(best.slot) {
		return best
	}
	reachable := *q
	reachable.accepting = q.accepting.without(q.unreachable)
	if other := reachable.search(); other.slot != nowhere {
		other.leftOut = best.leftOut
		return other
	}
	return best
}

// search returns the cell that the strategy prefers among those that pass the
// three stages. Each strategy is an order: the lowest score wins, of equal
// scores the highest rank, of equal ranks the first name.
//
// A stage is a word for 64 cells at a time, and a block of 64 tells without a
// look at its cells how low their scores can be. So a decision over thousands
// of cells looks closely at a few.
func (q *question) search() found {
	best := found{slot: nowhere, score: math.Inf(1)}
	for i, permitted := range q.permitted {
		accepted := permitted & q.accepting[i]
		if accepted == 0 {
			continue
		}
		block := q.view.Block(i)
		best.leftOut = best.leftOut || accepted&^block.Fresh != 0
		if open := accepted & block.Open; open != 0 {
			q.searchBlock(i, block, open, &best)
		}
	}
	return best
}

// searchBlock looks for something better than the best so far among the open
// cells of a block. Where the floor equals the best score only a tie is
// possible, and the rank, which costs less than a score, is asked first.
func (q *question) searchBlock(i int, block *capacity.Block, open uint64, best *found) {
	floor, hashes := q.floor(i, block), &q.fleet.hashes[i]
	tie := floor == best.score
	switch {
	case floor > best.score, tie && !q.taste.above(best.rank, hashes):
		return
	case q.strategy == registry.StrategyLeastLoaded && !tie:
		open = q.view.AtMost(best.score, i, open, &q.demand)
	}
	for ; open != 0; open &= open - 1 {
		bit := bits.TrailingZeros64(open)
		rank := q.taste.rank(hashes[bit])
		if tie && rank <= best.rank {
			continue
		}
		slot := i*64 + bit
		score := q.score(slot)
		if score > best.score || score == best.score && rank <= best.rank {
			continue
		}
		if _, short := q.view.Shortage(slot, &q.demand); !short {
			best.slot, best.score, best.rank = slot, score, rank
		}
	}
}

// score is the cell's place in the order of the strategy.
func (q *question) score(slot int) float64 {
	switch q.strategy {
	case registry.StrategyLeastLoaded:
		return q.view.Score(slot, &q.demand)
	case registry.StrategyRoundRobin:
		return float64(q.ahead(slot))
	case registry.StrategySticky:
		return 0
	default:
		return math.Inf(1)
	}
}

// floor is at most the score of any open cell of a block.
func (q *question) floor(i int, block *capacity.Block) float64 {
	switch q.strategy {
	case registry.StrategyLeastLoaded:
		return q.view.Floor(block, &q.demand)
	case registry.StrategyRoundRobin:
		if q.turn/64 == i {
			return 0
		}
		return float64(q.ahead(i * 64))
	case registry.StrategySticky:
		return 0
	default:
		return math.Inf(1)
	}
}

// ahead is how many turns a cell has to wait.
func (q *question) ahead(slot int) int {
	if slot < q.turn {
		return slot - q.turn + len(q.fleet.cells)
	}
	return slot - q.turn
}

// confidence says how much was known.
func (f found) confidence() v1alpha1.Confidence {
	if f.leftOut {
		return v1alpha1.ConfidenceDegraded
	}
	return v1alpha1.ConfidenceHigh
}
