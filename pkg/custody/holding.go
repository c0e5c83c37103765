package custody

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"time"

	"cellcast.io/cellcast/pkg/kubeconfig"
)

// holding is what is remembered of one target. The token isn't: it's in the file.
type holding struct {
	reading chan struct{} // has room for the one read that is under way

	// The rest is under Custody.mu.

	loaded     bool
	ref        Ref
	connection Connection
	// changed says that the source names another connection than this.
	changed bool
	// suspect says that the target refused the token: the source is read before it
	// is given again. failure is why that failed, or why the token is gone.
	suspect bool
	failure error
	// quietUntil is when the source may be read again for a refused token.
	quietUntil time.Time
	// flight is closed when the read for a refused token is over; nil without one.
	flight chan struct{}
}

func (h *holding) begin(ctx context.Context) error {
	select {
	case h.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *holding) end() { <-h.reading }

// holding returns what is remembered of the target, from now on.
func (c *Custody) holding(ref Ref) (*holding, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	h, known := c.held[ref.address()]
	if !known {
		h = &holding{reading: make(chan struct{}, 1)}
		c.held[ref.address()] = h
	}
	return h, nil
}

// current returns an error where the target was forgotten meanwhile: what was read
// for it must leave no file. The lock is held.
func (c *Custody) current(h *holding, ref Ref) error {
	switch {
	case c.closed:
		return errClosed
	case c.held[ref.address()] != h:
		return errForgotten
	default:
		return nil
	}
}

// keep takes what Load has read. The lock is held.
func (c *Custody) keep(h *holding, ref Ref, k kubeconfig.Kubeconfig, version string) (Connection, error) {
	if err := c.current(h, ref); err != nil {
		return Connection{}, err
	}
	if err := c.files.Write(ref.Target, k.Token); err != nil {
		// The old token isn't the source's any more.
		h.loaded, h.suspect, h.failure = false, false, err
		return Connection{}, errors.Join(err, c.files.Remove(ref.Target))
	}
	h.loaded, h.ref = true, ref
	h.connection = Connection{Address: ref.address(), Server: k.Server, CAData: k.CAData, Version: version}
	h.changed, h.suspect, h.failure = false, false, nil
	given := h.connection
	given.CAData = bytes.Clone(given.CAData)
	return given, nil
}

// lose drops what was loaded before, where the failure to read it again says that
// its owner has taken it away. The lock is held.
func (c *Custody) lose(h *holding, ref Ref, failure error) error {
	if c.current(h, ref) != nil || !h.loaded {
		return nil
	}
	if mayClear(failure) && sameSource(h.ref, ref) {
		return nil
	}
	h.loaded, h.suspect, h.failure = false, false, failure
	return c.files.Remove(ref.Target)
}

func sameSource(a, b Ref) bool {
	return a.Namespace == b.Namespace && a.Owner == b.Owner && reflect.DeepEqual(a.Source, b.Source)
}
