package keyset

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

var _ oidc.KeySet = (*Set)(nil)

// step is one thing that happens to a key set, and what is expected then.
type step struct {
	after time.Duration // time that passes first
	do    func(p *publisher)
	key   string // whose token is shown
	want  error
	reads int // of the key set since the beginning
}

func TestSetThroughTime(t *testing.T) {
	keys := map[string]signingKey{}
	for _, id := range []string{"old", "new", "newer", "stranger"} {
		keys[id] = newKey(t, id)
	}
	publish := func(ids ...string) func(*publisher) {
		return func(p *publisher) {
			var published []signingKey
			for _, id := range ids {
				published = append(published, keys[id])
			}
			p.publish(published...)
		}
	}
	down := func(p *publisher) { p.set(true, 0) }
	up := func(p *publisher) { p.set(false, 0) }

	tests := map[string][]step{
		"reads once for any number of good tokens": {
			{do: publish("old"), key: "old", reads: 1},
			{key: "old", reads: 1},
			{after: time.Minute, key: "old", reads: 1},
		},
		"reads once per cooldown for unknown keys": {
			{do: publish("old"), key: "stranger", want: ErrUnknownKey, reads: 1},
			{key: "stranger", want: ErrUnknownKey, reads: 1},
			{after: 9 * time.Second, key: "stranger", want: ErrUnknownKey, reads: 1},
			{after: time.Second, key: "stranger", want: ErrUnknownKey, reads: 2},
		},
		"finds a new key at its first use, when the cooldown is over": {
			{do: publish("old"), key: "old", reads: 1},
			{after: 10 * time.Second, do: publish("old", "new"), key: "new", reads: 2},
			{key: "old", reads: 2},
		},
		"refuses a new key within the cooldown, then finds it": {
			{do: publish("old"), key: "old", reads: 1},
			{after: time.Second, do: publish("new"), key: "new", want: ErrUnknownKey, reads: 1},
			{after: 9 * time.Second, key: "new", reads: 2},
		},
		"keeps a dropped key for the overlap after it was last seen": {
			{do: publish("old"), key: "old", reads: 1},
			{after: 10 * time.Second, do: publish("new"), key: "new", reads: 2},
			{key: "old", reads: 2},
			{after: 4 * time.Minute, key: "old", reads: 2},
			{after: 5 * time.Minute, key: "old", reads: 3},
			{after: 50 * time.Second, key: "old", want: ErrUnknownKey, reads: 4},
		},
		"keeps the dropped keys of two rotations in a row": {
			{do: publish("old"), key: "old", reads: 1},
			{after: 10 * time.Second, do: publish("new"), key: "new", reads: 2},
			{after: 10 * time.Second, do: publish("newer"), key: "newer", reads: 3},
			{key: "old", reads: 3},
			{key: "new", reads: 3},
		},
		"doesn't use once more a key that was dropped while nobody asked": {
			{do: publish("old"), key: "old", reads: 1},
			{after: time.Hour, do: publish("new"), key: "old", want: ErrUnknownKey, reads: 2},
		},
		"a dropped key that is published again is whole again": {
			{do: publish("old"), key: "old", reads: 1},
			{after: 10 * time.Second, do: publish("new"), key: "new", reads: 2},
			{after: 5 * time.Minute, do: publish("old", "new"), key: "old", reads: 3},
			{after: 9 * time.Minute, key: "old", reads: 4},
		},
		"known keys serve while the issuer is away, unknown ones are refused": {
			{do: publish("old"), key: "old", reads: 1},
			{after: time.Hour, do: down, key: "old", reads: 2},
			{key: "stranger", want: ErrUnavailable, reads: 2},
			{after: 10 * time.Second, key: "stranger", want: ErrUnavailable, reads: 3},
			{after: 24 * time.Hour, key: "old", reads: 4},
			{after: 10 * time.Second, do: up, key: "old", reads: 5},
		},
		"a dropped key ends on time though the issuer is away": {
			{do: publish("old"), key: "old", reads: 1},
			{after: 10 * time.Second, do: publish("new"), key: "new", reads: 2},
			{after: 10 * time.Minute, do: down, key: "old", want: ErrUnavailable, reads: 3},
			{key: "new", reads: 3},
		},
		"nothing is accepted before the keys were read": {
			{do: func(p *publisher) { publish("old")(p); down(p) }, key: "old", want: ErrUnavailable, reads: 1},
			{after: 5 * time.Second, do: up, key: "old", want: ErrUnavailable, reads: 1},
			{after: 5 * time.Second, key: "old", reads: 2},
		},
		"a set that was emptied refuses after the overlap": {
			{do: publish("old"), key: "old", reads: 1},
			{after: 5 * time.Minute, do: publish(), key: "old", reads: 2},
			{after: 5 * time.Minute, key: "old", want: ErrUnknownKey, reads: 3},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &publisher{}
				s := New(p.fetch, Options{})
				for i, step := range steps {
					time.Sleep(step.after)
					if step.do != nil {
						step.do(p)
					}
					_, err := s.VerifySignature(t.Context(), keys[step.key].token(t))
					synctest.Wait()
					if !errors.Is(err, step.want) {
						t.Errorf("step %d: token of %s: got %v, want %v", i, step.key, err, step.want)
					}
					if got := p.count(); got != step.reads {
						t.Errorf("step %d: %d reads, want %d", i, got, step.reads)
					}
				}
			})
		})
	}
}

func TestConcurrentCallersShareOneRead(t *testing.T) {
	key := newKey(t, "a")
	token := key.token(t)
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{delay: time.Second}
		p.publish(key)
		s := New(p.fetch, Options{})
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				if _, err := s.VerifySignature(t.Context(), token); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if got := p.count(); got != 1 {
			t.Errorf("%d reads, want 1", got)
		}
	})
}

func TestCallerThatLeavesCancelsNobodyElse(t *testing.T) {
	key := newKey(t, "a")
	token := key.token(t)
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{delay: 5 * time.Second}
		p.publish(key)
		s := New(p.fetch, Options{})
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var callers sync.WaitGroup
		callers.Go(func() {
			if _, err := s.VerifySignature(hasty, token); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the hasty caller: got %v, want %v", err, context.DeadlineExceeded)
			}
		})
		synctest.Wait()
		callers.Go(func() {
			if _, err := s.VerifySignature(t.Context(), token); err != nil {
				t.Errorf("the patient caller: %v", err)
			}
		})
		callers.Wait()
		if got := p.count(); got != 1 {
			t.Errorf("%d reads, want 1", got)
		}
	})
}

func TestSlowIssuerCostsAKnownKeyTwoSecondsOnce(t *testing.T) {
	key := newKey(t, "a")
	token := key.token(t)
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{}
		p.publish(key)
		s := New(p.fetch, Options{})
		if _, err := s.VerifySignature(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		p.set(false, time.Minute) // longer than any fetch may take
		for i, want := range []time.Duration{2 * time.Second, 0, 0} {
			start := time.Now()
			if _, err := s.VerifySignature(t.Context(), token); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			if got := time.Since(start); got != want {
				t.Errorf("call %d took %s, want %s", i, got, want)
			}
			time.Sleep(30 * time.Second)
		}
	})
}

func TestRefreshTellsTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &publisher{down: true}
		s := New(p.fetch, Options{})
		const want = "the issuer's keys can't be read: connection refused"
		for range 2 {
			if err := s.Refresh(t.Context()); err == nil || err.Error() != want {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		if got := p.count(); got != 1 {
			t.Errorf("%d reads, want 1", got)
		}
		time.Sleep(10 * time.Second)
		p.set(false, 0)
		if err := s.Refresh(t.Context()); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}
