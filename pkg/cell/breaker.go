package cell

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

const (
	// failuresToOpen is how many connection failures in a row stop the hub from
	// asking a cell.
	failuresToOpen = 5
	// pause is the least time for which it isn't asked then; up to half as much
	// again is added at random, so that replicas don't try in step.
	pause = 10 * time.Second
)

// Unavailable says that the hub isn't asking the cell for a while, because it
// could not be connected to.
type Unavailable struct {
	// Since is when the first of the failures in a row was seen.
	Since time.Time
	// RetryAfter is how long it takes until the hub tries again.
	RetryAfter time.Duration
	// Last is the last failure.
	Last error
}

// Error names the time and the last failure.
func (u *Unavailable) Error() string {
	return fmt.Sprintf("not asked: it can't be reached since %s: %v", u.Since.UTC().Format(time.RFC3339), u.Last)
}

// breaker keeps the hub from waiting, again and again, for a cell that can't be
// connected to. Failures in a row open it: calls fail at once. After a pause one
// call goes through, and its end decides.
//
// Only a connection that can't be made or breaks counts, and a call that runs
// out of the client's own time. Whatever the cell answers closes it: a 401 or a
// 503 comes quickly and is for the caller to judge. A caller that went away, or
// whose own deadline was too short, counts neither way, or callers could park a
// cell for everyone.
type breaker struct {
	next  http.RoundTripper
	clock clock.PassiveClock
	// opened and closed are told when it has; they may be called under mu.
	opened, closed func()

	mu       sync.Mutex
	failures int
	since    time.Time
	last     error
	retryAt  time.Time // while open; zero while closed
	probing  bool
}

// newBreaker returns a closed breaker. opened is called each time that it
// opens: connections that have gone dead must not meet the next call.
func newBreaker(next http.RoundTripper, clock clock.PassiveClock, opened, closed func()) *breaker {
	return &breaker{next: next, clock: clock, opened: opened, closed: closed}
}

// RoundTrip sends the request, or fails with *Unavailable.
func (b *breaker) RoundTrip(request *http.Request) (*http.Response, error) {
	probe, err := b.enter()
	if err != nil {
		closeBody(request)
		return nil, err
	}
	response, err := b.next.RoundTrip(request)
	b.leave(probe, err, judge(request.Context(), err))
	return response, err
}

// verdict is what a call says about the connection to the cell.
type verdict int

const (
	inconclusive verdict = iota
	answered
	failed
)

func judge(ctx context.Context, err error) verdict {
	if err == nil || errors.Is(err, errSwitched) {
		return answered
	}
	if _, ok := errors.AsType[*tokenError](err); ok {
		return inconclusive
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errNoAnswer) {
		return inconclusive
	}
	return failed
}

// enter lets a call through, or says why not. probe is true for the one call
// that goes through an open breaker.
func (b *breaker) enter() (probe bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.retryAt.IsZero() {
		return false, nil
	}
	now := b.clock.Now()
	if now.Before(b.retryAt) || b.probing {
		return false, &Unavailable{Since: b.since, RetryAfter: max(b.retryAt.Sub(now), time.Second), Last: b.last}
	}
	b.probing = true
	return true, nil
}

// parked reports whether a call would fail at once now.
func (b *breaker) parked() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.retryAt.IsZero() && (b.probing || b.clock.Now().Before(b.retryAt))
}

func (b *breaker) leave(probe bool, err error, v verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if probe {
		b.probing = false
	}
	switch v {
	case answered:
		if !b.retryAt.IsZero() {
			b.closed()
		}
		b.failures, b.since, b.last, b.retryAt = 0, time.Time{}, nil, time.Time{}
	case failed:
		b.fail(probe, err)
	case inconclusive:
	}
}

func (b *breaker) fail(probe bool, err error) {
	now := b.clock.Now()
	if b.failures == 0 {
		b.since = now
	}
	b.failures++
	b.last = err
	open := !b.retryAt.IsZero()
	if b.failures < failuresToOpen || open && !probe {
		return // a call that began before it opened doesn't prolong the pause
	}
	b.retryAt = now.Add(wait.Jitter(pause, 0.5))
	b.opened()
}
