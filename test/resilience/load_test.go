package resilience

import (
	"context"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// leastRate is how few placements may begin each second on a machine that can't
	// do wantedRate. CELLCAST_RATE sets another rate, which is held to.
	leastRate = 2
	// tellingRate is the rate below which the test says that it shows little.
	tellingRate = 10
	// lasting is for how long they begin, at least.
	lasting = time.Minute
	// patience is the client's --timeout.
	patience = 30 * time.Second
)

// load begins runs at a steady rate, each at its time, whether or not the ones
// before it have ended: pipelines don't wait for each other.
type load struct {
	*pipelines
	rate int
	// places bound how many are under way: those that begin in twenty seconds. A run
	// has six sockets, with both ends of its gate and of the balancer.
	places chan struct{}

	// skipped are runs that found no place; late is by how much the latest of the
	// others began after its time.
	skipped atomic.Int64
	late    time.Duration

	mu       sync.Mutex
	outcomes []outcome
}

func newLoad(p *pipelines, rate int) *load {
	return &load{pipelines: p, rate: rate, places: make(chan struct{}, 20*rate)}
}

// sustained is a load at a rate that this machine can sustain while nothing is
// wrong, with some to spare for what goes wrong: half of the placements are
// answered within 150 ms. Where they pile up, it's the machine that fails.
func sustained(t *testing.T) *load {
	t.Helper()
	p := newPipelines(t)
	if text := os.Getenv("CELLCAST_RATE"); text != "" {
		rate, err := strconv.Atoi(text)
		if err != nil || rate < 1 {
			t.Fatalf("CELLCAST_RATE is %q and must be placements per second", text)
		}
		return newLoad(p, rate)
	}
	done := make(chan struct{})
	close(done)
	for tries := 0; ; tries++ {
		rate := wantedRate >> (tries / 2) // twice each: a machine may be busy for a moment
		trial := newLoad(p, rate)
		trial.began = time.Now()
		trial.run(t.Context(), 4*time.Second, done)
		tried := summarise([]*event{{}}, trial.outcomes)[0]
		if tried.p50 > 0 && tried.p50 <= 150*time.Millisecond || rate/2 < leastRate {
			return newLoad(p, rate)
		}
		t.Logf("%d placements a second are too many for this machine: half of them take longer than %s", rate, tried.p50.Round(time.Millisecond))
	}
}

// run begins runs, from l.began on for so long, and after it until done is
// closed. It returns when all have ended.
func (l *load) run(ctx context.Context, lasting time.Duration, done <-chan struct{}) {
	var runs sync.WaitGroup
	defer runs.Wait()
	for number := 0; ctx.Err() == nil; number++ {
		due := time.Duration(number) * time.Second / time.Duration(l.rate)
		if due >= lasting && closed(done) {
			return
		}
		time.Sleep(due - time.Since(l.began))
		l.late = max(l.late, time.Since(l.began)-due)
		select {
		case l.places <- struct{}{}:
		default:
			l.skipped.Add(1)
			continue
		}
		runs.Go(func() {
			o := l.place(ctx, number)
			<-l.places
			l.mu.Lock()
			defer l.mu.Unlock()
			l.outcomes = append(l.outcomes, o)
		})
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
