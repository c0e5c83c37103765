package podidentity

import (
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellcast.io/cellcast/pkg/keyset"
)

func TestSignature(t *testing.T) {
	key, stranger := newKey(t, "k"), newKey(t, "stranger")
	forger := newKey(t, "k")
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	parts := strings.Split(key.token(t, podClaims()), ".")

	tests := map[string]struct {
		token string
		want  Reason
		reads int
	}{
		"accepts a key of the target's":         {key.token(t, podClaims()), "", 1},
		"refuses a key that isn't published":    {stranger.token(t, podClaims()), ReasonUnknownKey, 1},
		"refuses another key under a known id":  {forger.token(t, podClaims()), ReasonSignature, 1},
		"refuses alg none":                      {encode(`{"alg":"none","kid":"k"}`) + "." + parts[1] + ".", ReasonAlgorithm, 0},
		"refuses a shared secret":               {encode(`{"alg":"HS256","kid":"k"}`) + "." + parts[1] + "." + parts[2], ReasonAlgorithm, 0},
		"refuses a cut-off signature":           {parts[0] + "." + parts[1] + ".", ReasonSignature, 0},
		"refuses junk":                          {"junk", ReasonMalformed, 0},
		"refuses nothing":                       {"", ReasonMalformed, 0},
		"refuses a token over 16 KiB":           {strings.Repeat("a", keyset.MaxToken+1), ReasonMalformed, 0},
		"refuses claims whose sources are gone": {key.token(t, podClaims().with(object{"_claim_names": object{"groups": "src"}})), ReasonMalformed, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := &api{keys: []signingKey{key}}
			pod, err := validator(t, brought, a).Validate(t.Context(), tc.token)
			if got := reasonOf(err); got != tc.want || (pod != Pod{}) != (tc.want == "") {
				t.Errorf("got %+v and %v, want %q", pod, err, tc.want)
			}
			if reads, _ := a.counts(); reads != tc.reads {
				t.Errorf("%d reads, want %d", reads, tc.reads)
			}
		})
	}
}

func TestTargetsOfOneIssuerStringDontVouchForEachOther(t *testing.T) {
	other := brought
	other.Target.UID, other.Endpoint = "t2", "https://other.acme.example:6443"
	mine, theirs, sameID := newKey(t, "mine"), newKey(t, "theirs"), newKey(t, "mine")
	validators := New(fleetOf{
		brought.Endpoint: {keys: []signingKey{mine}},
		other.Endpoint:   {keys: []signingKey{theirs, sameID}},
	})
	for _, tc := range []struct {
		at   Registration
		key  signingKey
		want Reason
	}{
		{brought, mine, ""},
		{brought, theirs, ReasonUnknownKey},
		{brought, sameID, ReasonSignature},
		{other, theirs, ""},
		{other, sameID, ""},
		{other, mine, ReasonSignature},
	} {
		v, err := validators.For(tc.at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Validate(t.Context(), tc.key.token(t, podClaims())); reasonOf(err) != tc.want {
			t.Errorf("key %s at %s: got %v, want %q", tc.key.id, tc.at.Target, err, tc.want)
		}
	}
}

func TestThousandPostsWithUnknownKeysReadTheKeysOnce(t *testing.T) {
	key := newKey(t, "k")
	synctest.Test(t, func(t *testing.T) {
		a := &api{keys: []signingKey{key}, delay: time.Second}
		v := validator(t, brought, a)
		post := func(want int) {
			t.Helper()
			token := newKey(t, "stranger").token(t, podClaims())
			var posts sync.WaitGroup
			for range 1000 {
				posts.Go(func() {
					if _, err := v.Validate(t.Context(), token); reasonOf(err) != ReasonUnknownKey {
						t.Errorf("got %v, want %s", err, ReasonUnknownKey)
					}
				})
			}
			posts.Wait()
			if reads, _ := a.counts(); reads != want {
				t.Errorf("%d reads, want %d", reads, want)
			}
		}
		post(1)
		post(1)
		time.Sleep(10 * time.Second)
		post(2)
	})
}

func TestRotationFailsNoToken(t *testing.T) {
	before, after := newKey(t, "before"), newKey(t, "after")
	synctest.Test(t, func(t *testing.T) {
		a := &api{keys: []signingKey{before}}
		v := validator(t, brought, a)
		check := func(key signingKey, want Reason) {
			t.Helper()
			if _, err := v.Validate(t.Context(), key.token(t, podClaims())); reasonOf(err) != want {
				t.Errorf("key %s: got %v, want %q", key.id, err, want)
			}
		}
		check(before, "")
		time.Sleep(10 * time.Second)
		a.set(func(a *api) { a.keys = []signingKey{after} })
		check(after, "")
		check(before, "")
		time.Sleep(9 * time.Minute)
		check(before, "")
		time.Sleep(time.Minute)
		check(before, ReasonUnknownKey)
		check(after, "")
	})
}

func TestKeysThatCantBeReadAreNoRejection(t *testing.T) {
	key, stranger := newKey(t, "k"), newKey(t, "stranger")
	synctest.Test(t, func(t *testing.T) {
		a := &api{keys: []signingKey{key}, err: errors.New("connection refused")}
		v := validator(t, brought, a)
		_, err := v.Validate(t.Context(), key.token(t, podClaims()))
		if got, want := text(err), "pod of target:t1: KeysUnavailable: the issuer's keys can't be read: connection refused"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		a.set(func(a *api) { a.err = nil })
		time.Sleep(10 * time.Second)
		if _, err := v.Validate(t.Context(), key.token(t, podClaims())); err != nil {
			t.Errorf("with the keys back: %v", err)
		}
		a.set(func(a *api) { a.err = errors.New("connection refused") })
		time.Sleep(time.Hour)
		for key, want := range map[signingKey]Reason{key: "", stranger: ReasonKeysUnavailable} {
			if _, err := v.Validate(t.Context(), key.token(t, podClaims())); reasonOf(err) != want {
				t.Errorf("key %s with the keys away again: got %v, want %q", key.id, err, want)
			}
		}
	})
}

func TestTokenThatEndsWhileKeysAreRead(t *testing.T) {
	key := newKey(t, "k")
	for life, want := range map[time.Duration]Reason{
		4 * time.Second: ReasonExpired, 5 * time.Second: ReasonExpired, 6 * time.Second: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			v := validator(t, brought, &api{keys: []signingKey{key}, delay: 5 * time.Second})
			token := key.token(t, podClaims().with(object{"exp": time.Now().Add(life).Unix()}))
			if _, err := v.Validate(t.Context(), token); reasonOf(err) != want {
				t.Errorf("a token of %s: got %v, want %q", life, err, want)
			}
		})
	}
}
