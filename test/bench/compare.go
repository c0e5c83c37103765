package main

import (
	"context"
	"fmt"
	"time"
)

// How often each side of a comparison asks: before it counts, and then.
const (
	warmUp  = 200
	counted = 1_500
)

// side is one kind of request.
type side struct {
	name string
	ask  func(context.Context) error
}

// comparison is a question to cellcast beside one that Kubernetes answers, and
// how many times as long it may take.
type comparison struct {
	ours, theirs side
	most         float64
}

// medians are what each side of a comparison takes, in µs.
type medians struct{ ours, theirs float64 }

// run asks in alternation, one request at a time, so that whatever else slows
// the machine slows both sides.
func (c comparison) run(ctx context.Context, r *report) (medians, error) {
	ours, theirs, err := c.alternate(ctx)
	if err != nil {
		return medians{}, err
	}
	m := medians{
		ours:   r.spread(c.ours.name, newTimes(ours)),
		theirs: r.spread(c.theirs.name+"_beside_"+c.ours.name, newTimes(theirs)),
	}
	name := c.ours.name + "_over_" + c.theirs.name + "_p50"
	r.result(name, m.ours/m.theirs, "ratio")
	r.atMost(name, m.ours/m.theirs, c.most)
	return m, nil
}

func (c comparison) alternate(ctx context.Context) (ours, theirs []time.Duration, err error) {
	for i := range warmUp + counted {
		took, err := c.ours.time(ctx)
		if err != nil {
			return nil, nil, err
		}
		beside, err := c.theirs.time(ctx)
		if err != nil {
			return nil, nil, err
		}
		if i >= warmUp {
			ours, theirs = append(ours, took), append(theirs, beside)
		}
	}
	return ours, theirs, nil
}

// time asks once and returns how long the answer took.
func (s side) time(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := s.ask(ctx)
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	return took, nil
}
