package mirror

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// Freshness is the age to which an answer of the hub's API server is given
	// out again. It's all that a rotated key has to wait for.
	Freshness = 5 * time.Second
	// failureFreshness is the same for a failure.
	failureFreshness = time.Second
	// patience bounds one request to the hub's API server.
	patience = 5 * time.Second
)

// document is one document of the hub's API server.
type document struct {
	contentType string
	upstream    Upstream
	path        string
	// filter makes what is given out of what came.
	filter  func([]byte) ([]byte, error)
	clock   clock.PassiveClock
	flights singleflight.Group

	mu   sync.Mutex
	last answer
}

// answer is the last one, whatever it was.
type answer struct {
	body  []byte
	err   error
	until time.Time
}

// get returns the document. Many who want it at once cause one request.
func (d *document) get(ctx context.Context) ([]byte, error) {
	if last := d.cached(); d.clock.Now().Before(last.until) {
		return last.body, last.err
	}
	fetched := d.flights.DoChan("", func() (any, error) { return d.fetch(), nil })
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case result := <-fetched:
		a := result.Val.(answer)
		return a.body, a.err
	}
}

// fetch asks the hub's API server. It belongs to everyone who waits, so no one's
// context ends it.
func (d *document) fetch() answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	raw, err := d.upstream.Get(ctx, d.path)
	if err != nil {
		err = fmt.Errorf("reading %s of the hub's API server: %w", d.path, err)
	}
	a := answer{err: err}
	if err == nil {
		a.body, a.err = d.filter(raw)
	}
	now := d.clock.Now()
	a.until = now.Add(Freshness)
	if a.err != nil {
		a.until = now.Add(failureFreshness)
		klog.Background().Error(a.err, "The discovery mirror can't answer", "path", d.path)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = a
	return a
}

func (d *document) cached() answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}
