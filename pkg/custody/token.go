package custody

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/secret"
)

// Token returns the token of a connection that was loaded, by its Credential. After
// Reject it first reads the source anew, once for all who ask. The error is ErrNotLoaded,
// ErrConnectionChanged, what Load could return, or the context's.
func (c *Custody) Token(ctx context.Context, credential string) (secret.Value, error) {
	address, _, _ := strings.Cut(credential, "#")
	if flight := c.renewal(ctx, address); flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
			return secret.Value{}, context.Cause(ctx)
		}
	}
	token, err := c.present(address, credential)
	if err != nil {
		return secret.Value{}, fmt.Errorf("%s: %w", address, err)
	}
	return token, nil
}

// Reject says that the target didn't believe the token. It reports whether Token
// will look for another one: it will once in ten seconds, so that a target that
// refuses everything doesn't make the hub read the source for each call.
func (c *Custody) Reject(credential string, token secret.Value) bool {
	address, _, _ := strings.Cut(credential, "#")
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[address]
	if h == nil || !h.loaded || h.changed || h.connection.Credential() != credential {
		return false
	}
	kept, err := c.files.Read(h.ref.Target)
	if err != nil {
		return false
	}
	if !kept.Equal(token) {
		return true // it was replaced while the target looked at the old one
	}
	if !h.suspect && !c.options.Clock.Now().Before(h.quietUntil) {
		h.suspect, h.failure = true, nil
	}
	return h.suspect && h.failure == nil
}

// present returns what is in the target's file, if it may be given.
func (c *Custody) present(address, credential string) (secret.Value, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[address]
	switch {
	case c.closed:
		return secret.Value{}, errClosed
	case h == nil:
		return secret.Value{}, ErrNotLoaded
	case h.failure != nil:
		return secret.Value{}, h.failure
	case !h.loaded:
		return secret.Value{}, ErrNotLoaded
	case h.changed, h.connection.Credential() != credential:
		return secret.Value{}, ErrConnectionChanged
	default:
		return c.files.Read(h.ref.Target)
	}
}

// renewal returns the read that a refused token needs, starting it if need be; nil
// where none is needed, or none may be made yet.
func (c *Custody) renewal(ctx context.Context, address string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[address]
	if h == nil || !h.suspect {
		return nil
	}
	if h.flight == nil {
		if h.failure != nil && c.options.Clock.Now().Before(h.quietUntil) {
			return nil
		}
		h.flight = make(chan struct{})
		go c.renew(context.WithoutCancel(ctx), h, h.ref)
	}
	return h.flight
}

// renew belongs to everyone who waits, so no one's context ends it.
func (c *Custody) renew(ctx context.Context, h *holding, ref Ref) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	c.land(h, ref, c.reread(ctx, h, ref))
}

func (c *Custody) reread(ctx context.Context, h *holding, ref Ref) error {
	if err := h.begin(ctx); err != nil {
		return fmt.Errorf("waiting for another read of the credential: %w", err)
	}
	defer h.end()
	if !c.needed(h, ref) {
		return nil
	}
	k, version, err := c.read(ctx, ref)
	if err != nil {
		return err
	}
	return c.replace(h, ref, k, version)
}

// needed reports whether Load, or Forget, hasn't come first.
func (c *Custody) needed(h *holding, ref Ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return h.suspect && c.current(h, ref) == nil
}

// replace takes what was read for a refused token: the token alone, for the
// connection that is there.
func (c *Custody) replace(h *holding, ref Ref, k kubeconfig.Kubeconfig, version string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.current(h, ref); err != nil {
		return err
	}
	if k.Server != h.connection.Server || !bytes.Equal(k.CAData, h.connection.CAData) {
		h.changed, h.suspect, h.failure = true, false, nil
		return c.files.Remove(ref.Target)
	}
	if err := c.files.Write(ref.Target, k.Token); err != nil {
		return err
	}
	h.connection.Version = version
	h.suspect, h.failure = false, nil
	return nil
}

// land ends the read for a refused token.
func (c *Custody) land(h *holding, ref Ref, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.quietUntil = c.options.Clock.Now().Add(cooldown)
	if failure != nil && h.suspect { // else Load came first
		h.failure = errors.Join(failure, c.lose(h, ref, failure))
	}
	close(h.flight)
	h.flight = nil
}
