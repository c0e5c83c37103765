package cell

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// wire is the connection to a cell: err is how it fails, took how long that
// takes.
type wire struct {
	code  int
	err   error
	took  time.Duration
	calls int
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	w.calls++
	select {
	case <-request.Context().Done():
		return nil, context.Cause(request.Context())
	case <-time.After(w.took):
	}
	if w.err != nil {
		return nil, w.err
	}
	return &http.Response{StatusCode: w.code, Body: http.NoBody}, nil
}

var errRefused = errors.New("connection refused")

func call(t *testing.T, ctx context.Context, b *breaker) error {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cell.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := b.RoundTrip(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

func newTestBreaker(w *wire) (b *breaker, opened *int) {
	opened = new(int)
	return newBreaker(w, clock.RealClock{}, func() { *opened++ }, func() {}), opened
}

func isParked(err error) bool {
	_, parked := errors.AsType[*Unavailable](err)
	return parked
}

func TestBreakerOpensAtTheFifthConnectionFailureInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{err: errRefused}
		b, opened := newTestBreaker(w)
		began := time.Now()
		for i := range 5 {
			if err := call(t, t.Context(), b); !errors.Is(err, errRefused) {
				t.Fatalf("call %d: %v, want the failure itself", i+1, err)
			}
			time.Sleep(time.Second)
		}

		err := call(t, t.Context(), b)
		unavailable, ok := errors.AsType[*Unavailable](err)
		if !ok {
			t.Fatalf("the sixth call got %v, want Unavailable", err)
		}
		if w.calls != 5 || *opened != 1 {
			t.Errorf("the cell was called %d times, want 5; opened %d times, want 1", w.calls, *opened)
		}
		if !unavailable.Since.Equal(began) {
			t.Errorf("unavailable since %s, want the first failure at %s", unavailable.Since, began)
		}
		if after := unavailable.RetryAfter; after < 9*time.Second || after > 14*time.Second {
			t.Errorf("retry after %s, want what is left of ten to fifteen seconds", after)
		}
		want := "not asked: it can't be reached since " + began.UTC().Format(time.RFC3339) + ": connection refused"
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	})
}

func TestBreakerStaysClosed(t *testing.T) {
	gone := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	}
	hasty := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Millisecond)
	}
	patient := func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }

	tests := map[string]struct {
		wire   wire
		caller func(context.Context) (context.Context, context.CancelFunc)
	}{
		"on 401":                             {wire{code: 401}, patient},
		"on 403":                             {wire{code: 403}, patient},
		"on 404":                             {wire{code: 404}, patient},
		"on 429":                             {wire{code: 429}, patient},
		"on 500":                             {wire{code: 500}, patient},
		"on 503":                             {wire{code: 503}, patient},
		"on a caller that went away":         {wire{took: time.Second}, gone},
		"on a caller's own short deadline":   {wire{took: time.Second}, hasty},
		"when the hub can't get its token":   {wire{err: &tokenError{errRefused}}, patient},
		"when a wrapped error is a token's":  {wire{err: errors.Join(&tokenError{errRefused})}, patient},
		"when the caller's error is a reset": {wire{err: errRefused, took: time.Second}, hasty},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := newTestBreaker(&tt.wire)
				for range 3 * failuresToOpen {
					ctx, cancel := tt.caller(t.Context())
					err := call(t, ctx, b)
					cancel()
					if isParked(err) {
						t.Fatalf("it opened: %v", err)
					}
				}
				if tt.wire.calls != 3*failuresToOpen {
					t.Errorf("%d calls went through, want %d", tt.wire.calls, 3*failuresToOpen)
				}
			})
		})
	}
}

func TestBreakerCountsACallThatRunsOutOfTheClientsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newTestBreaker(&wire{took: time.Hour})
		for range failuresToOpen {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errNoAnswer)
			if err := call(t, ctx, b); !errors.Is(err, errNoAnswer) {
				t.Fatalf("got %v", err)
			}
			cancel()
		}
		if err := call(t, t.Context(), b); !isParked(err) {
			t.Errorf("got %v, want Unavailable", err)
		}
	})
}

func TestAnAnswerEndsTheRowOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{err: errRefused}
		b, _ := newTestBreaker(w)
		for range failuresToOpen - 1 {
			_ = call(t, t.Context(), b)
		}
		w.err, w.code = nil, 503
		_ = call(t, t.Context(), b)
		w.err = errRefused
		for range failuresToOpen - 1 {
			_ = call(t, t.Context(), b)
		}
		if err := call(t, t.Context(), b); isParked(err) {
			t.Errorf("it opened after %d failures in a row: %v", failuresToOpen-1, err)
		}
	})
}

// open returns a breaker that has just opened over the wire.
func open(t *testing.T, w *wire) (*breaker, *int) {
	t.Helper()
	w.err = errRefused
	b, opened := newTestBreaker(w)
	for range failuresToOpen {
		_ = call(t, t.Context(), b)
	}
	if err := call(t, t.Context(), b); !isParked(err) {
		t.Fatalf("it didn't open: %v", err)
	}
	return b, opened
}

func TestOneCallProbesAnOpenBreakerAfterThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		b, _ := open(t, w)
		time.Sleep(pause - time.Millisecond)
		if err := call(t, t.Context(), b); !isParked(err) {
			t.Fatalf("before the pause ends: %v, want Unavailable", err)
		}
		time.Sleep(pause/2 + time.Second)

		w.err, w.code, w.took, w.calls = nil, 200, time.Second, 0
		probe := make(chan error, 1)
		go func() { probe <- call(t, t.Context(), b) }()
		synctest.Wait()
		if err := call(t, t.Context(), b); !isParked(err) {
			t.Errorf("a second call during the probe: %v, want Unavailable", err)
		}
		if err := <-probe; err != nil {
			t.Errorf("the probe: %v", err)
		}
		if w.calls != 1 {
			t.Errorf("%d calls went through, want the probe alone", w.calls)
		}
		if err := call(t, t.Context(), b); err != nil {
			t.Errorf("after a good probe: %v", err)
		}
	})
}

func TestAFailedProbeBeginsANewPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		began := time.Now()
		b, opened := open(t, w)
		time.Sleep(2 * pause)
		if err := call(t, t.Context(), b); !errors.Is(err, errRefused) {
			t.Fatalf("the probe: %v", err)
		}
		time.Sleep(pause - time.Millisecond)
		unavailable, ok := errors.AsType[*Unavailable](call(t, t.Context(), b))
		if !ok {
			t.Fatal("the pause after the failed probe was too short")
		}
		if !unavailable.Since.Equal(began) || *opened != 2 {
			t.Errorf("since %s, want %s; opened %d times, want 2", unavailable.Since, began, *opened)
		}
	})
}

func TestAProbeWhoseCallerGoesAwayLeavesTheNextOneToProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		b, _ := open(t, w)
		time.Sleep(2 * pause)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		w.took = time.Second
		if err := call(t, gone, b); !errors.Is(err, context.Canceled) {
			t.Fatalf("the probe: %v", err)
		}
		w.err, w.code = nil, 200
		if err := call(t, t.Context(), b); err != nil {
			t.Errorf("the next call: %v, want it to probe", err)
		}
	})
}

func TestACallThatBeganEarlierDoesntProlongThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &wire{err: errRefused, took: pause - time.Second}
		b, _ := newTestBreaker(slow)
		late := make(chan error, 1)
		go func() { late <- call(t, t.Context(), b) }()
		synctest.Wait()
		b.next = &wire{err: errRefused}
		for range failuresToOpen {
			_ = call(t, t.Context(), b)
		}
		if err := <-late; !errors.Is(err, errRefused) {
			t.Fatalf("the early call: %v", err)
		}
		time.Sleep(pause/2 + 2*time.Second)
		b.next = &wire{code: 200}
		if err := call(t, t.Context(), b); err != nil {
			t.Errorf("after the pause: %v, want it to probe", err)
		}
	})
}
