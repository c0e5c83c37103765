package agent

import "time"

const (
	// firstBackoff is the longest wait after the first failure in a row; each
	// further one doubles it.
	firstBackoff = 2 * time.Second
	// longestWait bounds the backoff and what the hub may ask for: with a
	// longer silence the cell would go Unknown because of the waiting.
	longestWait = 30 * time.Second
)

// pace says how long to wait before the next report. Every wait is drawn from
// a range, so that a fleet of agents spreads over it.
type pace struct {
	interval time.Duration
	// random returns a number in [0, 1).
	random   func() float64
	failures int
}

// next returns the wait after an attempt:
//
//   - accepted or refused: the interval, give or take a tenth;
//   - failed or withheld: between half and the whole of a backoff that starts
//     at two seconds and doubles up to 30 seconds or the interval, whichever is
//     less; not less than what the hub advised, of which at most 30 seconds are
//     heeded and to which up to a tenth is added.
func (p *pace) next(o outcome, advised time.Duration) time.Duration {
	switch o {
	case accepted, refused:
		p.failures = 0
		return p.between(p.interval*9/10, p.interval*11/10)
	case failed, withheld:
	}
	ceiling := min(longestWait, p.interval)
	backoff := min(firstBackoff<<min(p.failures, 10), ceiling)
	p.failures++
	if advised = min(advised, longestWait); advised > backoff {
		return p.between(advised, advised*11/10)
	}
	return p.between(backoff/2, backoff)
}

func (p *pace) between(low, high time.Duration) time.Duration {
	return low + time.Duration(p.random()*float64(high-low))
}
