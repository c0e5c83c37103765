package cli

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	kruntime "k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/terminal"
	"cellcast.io/cellcast/pkg/refusal"
)

const (
	// longestTry is how long one try may take. It's longer than a hub gives a
	// cell (10 s), so that a cell that doesn't answer shows as MintUnavailable
	// and not as a hub that doesn't.
	longestTry = 15 * time.Second
	// shortestTry is the least time that a try is begun with: one that is cut off
	// may have minted a token that nobody gets.
	shortestTry = time.Second
	// spread is how much longer than advised it may wait, in parts.
	spread = 0.25
	// longWait is the wait that is spoken of.
	longWait = time.Second
)

// backoff is how long to wait where nobody says how long.
func backoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 5 * time.Second}
}

// about is the one thing that a question names: a cell, or a brought target as
// namespace/name. The zero value is none.
type about struct {
	cell, target string
	// mint says that it's a token of the target that was asked for.
	mint bool
}

// requestError is a question to the hub that wasn't answered as hoped.
type requestError struct {
	err     error
	at      door.Door
	timeout time.Duration
	// requestID is the id in the hub's audit trail or, of an answer that isn't in it
	// under one, that in the API servers' audit logs.
	requestID string
	// about is what was asked for by its name, if anything was.
	about about
	// refused are the refusals of this and of the tries before it.
	refused []*refusal.Refusal
}

func (e *requestError) Error() string { return e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// probe sends the owner of a target to what says how it is.
func (e *requestError) probe() string {
	namespace, name, _ := strings.Cut(e.about.target, "/")
	return "See what is wrong with the target, and what mends it: " + probeHint(namespace, name, e.at.Kubeconfig, e.at.Context)
}

// mayClear reports whether the same question can be answered later.
func (e *requestError) mayClear() bool {
	if r, ok := refusal.FromStatus(e.err); ok {
		return r.Code.Meaning().MayClear
	}
	return e.unavailable()
}

// ask asks until there is an answer that another try won't change, or no time for
// one. It waits as long as it's told to; where that is longer than it may take,
// it gives up at once.
func (h *hub) ask(ctx context.Context, named about, question *rest.Request, answer kruntime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	end := h.env.Now().Add(h.timeout)
	pauses := backoff()
	var refused []*refusal.Refusal
	for {
		h.auditID.Store("")
		err := once(ctx, min(end.Sub(h.env.Now()), longestTry), question, answer)
		if err == nil {
			return nil
		}
		if r, ok := refusal.FromStatus(err); ok {
			refused = append(refused, r)
		}
		id := refusal.RequestID(err)
		if id == "" {
			id, _ = h.auditID.Load().(string)
		}
		failed := &requestError{err: err, at: h.at, timeout: h.timeout, requestID: id, about: named, refused: refused}
		pause := advised(err)
		if pause <= 0 {
			pause = pauses.Step()
		} else {
			// All who were told the same must not come at once.
			pause += time.Duration(h.env.random() * spread * float64(pause))
		}
		if !failed.mayClear() || end.Sub(h.env.Now())-pause < shortestTry {
			return failed
		}
		if err := h.pause(ctx, pause, failed); err != nil {
			failed.err = err
			return failed
		}
	}
}

func once(ctx context.Context, longest time.Duration, question *rest.Request, answer kruntime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return question.MaxRetries(0).Do(ctx).Into(answer)
}

// pause waits before the next try, and says so where that takes long. The next
// try makes a new connection: behind the present one is the replica that failed.
func (h *hub) pause(ctx context.Context, d time.Duration, failed *requestError) error {
	if d > longWait {
		h.env.say("%s; asking again in %s", terminal.Printable(explain(failed, h.env.Now()).says), d.Round(100*time.Millisecond))
	}
	if err := h.env.sleep(ctx, d); err != nil {
		return err
	}
	utilnet.CloseIdleConnectionsFor(h.transport)
	return nil
}

// advised is the Retry-After of an answer; zero where there is none.
func advised(err error) time.Duration {
	s := statusOf(err)
	if s == nil || s.Details == nil {
		return 0
	}
	return time.Duration(s.Details.RetryAfterSeconds) * time.Second
}

// random is from 0 to 1, without 1.
func (e Env) random() float64 {
	if e.Random != nil {
		return e.Random()
	}
	return rand.Float64() //nolint:gosec // it spreads load and guards nothing
}

// sleep waits for d, or for the end of ctx.
func (e Env) sleep(ctx context.Context, d time.Duration) error {
	if e.Sleep != nil {
		err := e.Sleep(ctx, d)
		return errors.Join(ctx.Err(), err)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
