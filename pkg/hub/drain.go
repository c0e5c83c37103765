package hub

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// withFarewell closes each connection with the next answer on it once the
// replica is leaving, so that its clients, of which the aggregator keeps one
// connection for everybody, come back elsewhere while this one still answers.
func withFarewell(handler http.Handler, leaving <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-leaving:
			w.Header().Set("Connection", "close") // over HTTP/2 it becomes a GOAWAY
		default:
		}
		handler.ServeHTTP(w, r)
	})
}

// drainWithin returns when the API server has ended, or that long after ctx did.
func drainWithin(ctx context.Context, limit time.Duration, run func(context.Context) error) error {
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return fmt.Errorf("requests were still under way %s after the signal and are cut off", limit)
	}
}

// serveOn serves on top of the parts. When ctx is done, or a part fails, it
// drains; the parts, which the requests under way need, end only then.
func serveOn(ctx context.Context, serve func(context.Context) error, parts ...func(context.Context) error) error {
	serving, drain := context.WithCancel(ctx)
	defer drain()
	standing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var group errgroup.Group
	for _, part := range parts {
		group.Go(func() error {
			err := part(standing)
			if err != nil {
				drain()
			}
			return err
		})
	}
	err := serve(serving)
	end()
	if failed := group.Wait(); failed != nil {
		return failed
	}
	return err
}
