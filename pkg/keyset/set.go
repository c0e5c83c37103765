// Package keyset checks the signature of a JWT by the keys that its issuer
// publishes (RFC 7517), and bounds what a stranger's token can make the hub
// fetch.
//
// A Set promises:
//
//   - Nothing is accepted unverified: a key that isn't known, or can't be read,
//     is a refusal.
//   - Keys are read when a token needs them, at most once per cooldown however
//     many tokens name unknown keys, and by one request at a time that all
//     callers wait for.
//   - What the issuer says about caching is not heeded, so a new key is found
//     within the cooldown of its first use.
//   - While the issuer can't be reached, the keys known so far still serve.
//   - A key that the issuer has dropped is good for an overlap after it was
//     last seen, so that tokens in flight survive a rotation.
//
// There is no background work: a set that isn't used isn't refreshed.
package keyset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"k8s.io/utils/clock"
)

// Fetch reads the issuer's key set document: the JSON of RFC 7517. It is
// called with a context that ends after ten seconds and that no caller's
// departure cancels.
type Fetch func(ctx context.Context) ([]byte, error)

// Options are the times of a Set. A zero field has the default that it names.
type Options struct {
	// Cooldown is the least time between two reads of the keys, failed ones
	// included: 10 s.
	Cooldown time.Duration
	// MaxAge is the age from which the keys are read again when they're used:
	// 5 min.
	MaxAge time.Duration
	// Overlap is how long after it was last seen a key serves that the issuer
	// has dropped: twice MaxAge. At MaxAge or less there is no overlap.
	Overlap time.Duration
	// Clock tells the time; the real one by default.
	Clock clock.Clock
}

const (
	fetchTimeout = 10 * time.Second
	// patience is how long a token whose key is known waits for a refresh.
	patience = 2 * time.Second
)

// Set is the key set of one issuer. It fits go-oidc's KeySet interface, v2
// and v3. It is safe for concurrent use.
type Set struct {
	fetch   Fetch
	options Options

	mu          sync.Mutex
	keys        []known
	refreshedAt time.Time // of the last read that succeeded
	attemptedAt time.Time // when the last read ended; zero before the first
	err         error     // of the last read
	flight      chan struct{}
}

// New returns a Set that has read nothing yet.
func New(fetch Fetch, o Options) *Set {
	if o.Cooldown <= 0 {
		o.Cooldown = 10 * time.Second
	}
	if o.MaxAge <= 0 {
		o.MaxAge = 5 * time.Minute
	}
	if o.Overlap <= 0 {
		o.Overlap = 2 * o.MaxAge
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Set{fetch: fetch, options: o}
}

// VerifySignature returns the payload of a token whose signature is good. It
// says nothing about the claims in it. The error is ErrMalformed,
// ErrAlgorithm, ErrSignature, ErrUnknownKey or ErrUnavailable, or the
// context's; it quotes nothing of the token.
func (s *Set) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	jws, err := parse(token)
	if err != nil {
		return nil, err
	}
	s.renew(ctx)
	payload, err := verify(jws, s.usable())
	if !errors.Is(err, ErrUnknownKey) {
		return payload, err
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return verify(jws, s.usable())
}

// Refresh reads the keys, or waits for the read that is under way, and returns
// its error. Within the cooldown it reads nothing and returns the error of the
// last read, so nil means that the keys are at most one cooldown old.
func (s *Set) Refresh(ctx context.Context) error {
	s.mu.Lock()
	flight := s.take(ctx)
	s.mu.Unlock()
	if flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, s.err)
	}
	return nil
}

// renew reads keys that have come of age. It waits for them a little, so that
// a key that was dropped while nobody asked is not used once more; and not at
// all where the last read failed, so that a dead issuer costs no time.
func (s *Set) renew(ctx context.Context) {
	s.mu.Lock()
	if len(s.keys) == 0 || s.options.Clock.Since(s.refreshedAt) < s.options.MaxAge {
		s.mu.Unlock()
		return
	}
	failing := s.err != nil
	flight := s.take(ctx)
	s.mu.Unlock()
	if flight == nil || failing {
		return
	}
	timer := s.options.Clock.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-flight:
	case <-timer.C():
	case <-ctx.Done():
	}
}

// take returns a channel that closes when the read under way has ended,
// starting one if need be. It is nil within the cooldown. The lock is held.
func (s *Set) take(ctx context.Context) <-chan struct{} {
	if s.flight != nil {
		return s.flight
	}
	if !s.attemptedAt.IsZero() && s.options.Clock.Since(s.attemptedAt) < s.options.Cooldown {
		return nil
	}
	s.flight = make(chan struct{})
	go s.read(context.WithoutCancel(ctx))
	return s.flight
}

func (s *Set) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var keys []jose.JSONWebKey
	document, err := s.fetch(ctx)
	if err == nil {
		keys, err = Parse(document)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Clock.Now()
	if err == nil {
		s.keys = merge(s.keys, keys, now)
		s.refreshedAt = now
	}
	s.attemptedAt, s.err = now, err
	close(s.flight)
	s.flight = nil
}

// usable returns the keys that may check a signature now.
func (s *Set) usable() []jose.JSONWebKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Clock.Now()
	var keys []jose.JSONWebKey
	for _, k := range s.keys {
		if k.dropped && now.Sub(k.seenAt) >= s.options.Overlap {
			continue
		}
		keys = append(keys, k.JSONWebKey)
	}
	return keys
}
