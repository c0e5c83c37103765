package hub

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ending is a hub of one part that notes in which order things end.
type ending struct {
	mu    sync.Mutex
	began time.Time
	notes []string
}

func (e *ending) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notes = append(e.notes, time.Since(e.began).String()+" "+what)
}

// serve drains for ten seconds.
func (e *ending) serve(ctx context.Context) error {
	<-ctx.Done()
	e.note("it drains")
	time.Sleep(10 * time.Second)
	e.note("it has drained")
	return nil
}

func (e *ending) part(ctx context.Context) error {
	<-ctx.Done()
	e.note("a part ends")
	return nil
}

func TestPartsOutliveTheDrain(t *testing.T) {
	lost := errors.New("the lease is lost")
	tests := map[string]struct {
		parts func(*ending) []func(context.Context) error
		want  error
		notes []string
	}{
		"a signal": {func(e *ending) []func(context.Context) error { return []func(context.Context) error{e.part} },
			nil, []string{"5s it drains", "15s it has drained", "15s a part ends"}},
		"a part that fails ends the hub after the same drain": {func(e *ending) []func(context.Context) error {
			return []func(context.Context) error{e.part, func(context.Context) error { time.Sleep(time.Second); return lost }}
		}, lost, []string{"1s it drains", "11s it has drained", "11s a part ends"}},
		"a part that has nothing to do ends nothing": {func(e *ending) []func(context.Context) error {
			return []func(context.Context) error{e.part, func(context.Context) error { return nil }}
		}, nil, []string{"5s it drains", "15s it has drained", "15s a part ends"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &ending{began: time.Now()}
				ctx, signal := context.WithTimeout(t.Context(), 5*time.Second)
				defer signal()
				if err := serveOn(ctx, e.serve, tc.parts(e)...); !errors.Is(err, tc.want) {
					t.Errorf("got %v, want %v", err, tc.want)
				}
				if diff := cmp.Diff(tc.notes, e.notes); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestServerThatCantServeEndsTheParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, broken := &ending{began: time.Now()}, errors.New("no listener")
		if err := serveOn(t.Context(), func(context.Context) error { return broken }, e.part); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDrainIsBounded(t *testing.T) {
	tests := map[string]struct {
		takes time.Duration // after the signal
		after time.Duration
		want  string
	}{
		"it ends in time":   {24 * time.Second, 24 * time.Second, ""},
		"a request hangs":   {time.Hour, 25 * time.Second, "requests were still under way 25s after the signal and are cut off"},
		"it fails at first": {-time.Second, -time.Second, "no listener"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, signal := context.WithTimeout(t.Context(), time.Minute)
				defer signal()
				err := drainWithin(ctx, 25*time.Second, func(ctx context.Context) error {
					if tc.takes < 0 {
						time.Sleep(time.Minute + tc.takes)
						return errors.New("no listener")
					}
					<-ctx.Done()
					time.Sleep(tc.takes)
					return nil
				})
				if after := time.Since(began) - time.Minute; after != tc.after {
					t.Errorf("it returned %s after the signal, want %s", after, tc.after)
				}
				if (err == nil) != (tc.want == "") || (err != nil && err.Error() != tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				time.Sleep(time.Hour) // until the request that hangs has ended
			})
		})
	}
}

func TestLeavingReplicaClosesItsConnections(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		leaving := make(chan struct{})
		var from []string
		s := httptest.NewUnstartedServer(withFarewell(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			from = append(from, r.RemoteAddr)
		}), leaving))
		s.EnableHTTP2 = http2
		s.StartTLS()
		ask := func() {
			t.Helper()
			response, err := s.Client().Get(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		ask()
		ask()
		close(leaving)
		ask()
		for range 1000 { // a GOAWAY comes beside the answer
			ask()
			if from[len(from)-1] != from[0] {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if from[0] != from[1] || from[1] != from[2] {
			t.Errorf("HTTP/2 %v: a replica that stays closes connections: %v", http2, from)
		}
		if len(slices.Compact(slices.Clone(from))) == 1 {
			t.Errorf("HTTP/2 %v: a replica that leaves keeps its connections: %v", http2, from)
		}
		s.Close()
	}
}
