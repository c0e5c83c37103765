package clustertarget

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// runsAtOnce bounds the runs, and the looks, that are under way.
	runsAtOnce = 1024
	// runsOfANamespace bounds those of one namespace, so that whoever registers
	// targets that hang can't have every place.
	runsOfANamespace = 128
	// farewell is how long jobs may take to end with the process. The manager
	// waits for three seconds.
	farewell = 2 * time.Second
)

// pool runs jobs, some at once. Those that wait take turns by namespace, and in
// a namespace the first comes first.
type pool struct {
	clock          clock.WithTicker
	atOnce, ofEach int
	changed        chan struct{}
	mu             sync.Mutex
	running        int
	busy           map[string]int
	waiting        map[string][]func(context.Context)
	turns          []string // the namespaces that wait
}

func newPool(clock clock.WithTicker, atOnce, ofEach int) *pool {
	return &pool{
		clock: clock, atOnce: atOnce, ofEach: ofEach, changed: make(chan struct{}, 1),
		busy: map[string]int{}, waiting: map[string][]func(context.Context){},
	}
}

// Start runs jobs until ctx is done, and then waits a moment for them to end.
func (p *pool) Start(ctx context.Context) error {
	var jobs sync.WaitGroup
	for ctx.Err() == nil {
		namespace, job := p.take()
		if job != nil {
			jobs.Go(func() {
				defer p.give(namespace)
				job(ctx)
			})
			continue
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
		}
	}
	ended := make(chan struct{})
	go func() { defer close(ended); jobs.Wait() }()
	patience := p.clock.NewTimer(farewell)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C():
	}
	return nil
}

// add has a job wait for its turn.
func (p *pool) add(namespace string, job func(context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting[namespace]) == 0 {
		p.turns = append(p.turns, namespace)
	}
	p.waiting[namespace] = append(p.waiting[namespace], job)
	p.tell()
}

// take returns the job whose turn it is; nil when none may run now.
func (p *pool) take() (string, func(context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == p.atOnce {
		return "", nil
	}
	turn := slices.IndexFunc(p.turns, func(namespace string) bool { return p.busy[namespace] < p.ofEach })
	if turn < 0 {
		return "", nil
	}
	namespace := p.turns[turn]
	job := p.waiting[namespace][0]
	p.turns = slices.Delete(p.turns, turn, turn+1)
	if p.waiting[namespace] = p.waiting[namespace][1:]; len(p.waiting[namespace]) > 0 {
		p.turns = append(p.turns, namespace)
	} else {
		delete(p.waiting, namespace)
	}
	p.running++
	p.busy[namespace]++
	return namespace, job
}

// give frees the place of a job.
func (p *pool) give(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	if p.busy[namespace]--; p.busy[namespace] == 0 {
		delete(p.busy, namespace)
	}
	p.tell()
}

func (p *pool) tell() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}
