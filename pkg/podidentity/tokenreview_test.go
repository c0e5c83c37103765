package podidentity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAnswersOfTheCell(t *testing.T) {
	extra := func(name, uid []string) func(*authenticationv1.TokenReviewStatus) {
		return func(s *authenticationv1.TokenReviewStatus) {
			s.User.Extra = map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": name, "authentication.kubernetes.io/pod-uid": uid,
			}
		}
	}
	tests := map[string]struct {
		alter func(*authenticationv1.TokenReviewStatus)
		err   string
	}{
		"accepts the token's own pod": {func(*authenticationv1.TokenReviewStatus) {}, ""},
		"refuses what the cell refuses": {func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false },
			"Rejected: the cell doesn't accept the token"},
		"refuses another audience": {func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"https://kubernetes.default.svc"} },
			`Audience: the cell doesn't accept the token for "cellcast-ingest"`},
		"refuses an answer without audience": {func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil },
			`Audience: the cell doesn't accept the token for "cellcast-ingest"`},
		"refuses another user": {func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccount:team:admin" },
			`ServiceAccount: the cell doesn't take the token for "system:serviceaccount:team:runner"'s`},
		"refuses no pod":            {func(s *authenticationv1.TokenReviewStatus) { s.User.Extra = nil }, "NoPod: the cell names no pod for the token"},
		"refuses a pod without UID": {extra([]string{"work-1"}, nil), "NoPod: the cell names no pod for the token"},
		"refuses another pod":       {extra([]string{"work-2"}, []string{"u1"}), `Rejected: the cell names another pod than the token, "work-1" with UID "u1"`},
		"refuses another UID":       {extra([]string{"work-1"}, []string{"u2"}), `Rejected: the cell names another pod than the token, "work-1" with UID "u1"`},
		"refuses two pods":          {extra([]string{"work-1", "work-2"}, []string{"u1"}), `Rejected: the cell names another pod than the token, "work-1" with UID "u1"`},
	}
	key := newKey(t, "k")
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := validator(t, fleet, &api{keys: []signingKey{key}, alter: tc.alter})
			pod, err := v.Validate(t.Context(), key.token(t, podClaims()))
			if tc.err != "" {
				tc.err = "pod of cell:c1: " + tc.err
			}
			if text(err) != tc.err || (err == nil) != (pod == at(fleet.Target)) {
				t.Errorf("got %+v and\n%v, want\n%s", pod, err, tc.err)
			}
		})
	}
}

// A cell that says nothing about its issuer knows it itself.
func TestCellWithoutIssuerIsAskedAboutAny(t *testing.T) {
	key := newKey(t, "k")
	r := fleet
	r.Issuer = ""
	v := validator(t, r, &api{keys: []signingKey{key}})
	if _, err := v.Validate(t.Context(), key.token(t, podClaims().with(object{"iss": "https://c1"}))); err != nil {
		t.Error(err)
	}
}

// show is one token that is shown, after a time.
type show struct {
	after   time.Duration
	do      func(*api)
	token   string
	want    Reason
	reviews int // since the beginning
}

func TestVerdictsThroughTime(t *testing.T) {
	key, stranger := newKey(t, "k"), newKey(t, "stranger")
	down := func(a *api) { a.err = errors.New("connection refused") }
	up := func(a *api) { a.err = nil }
	remove := func(a *api) { a.gone = map[types.UID]bool{"u1": true} }

	tests := map[string][]show{
		"a yes is good for a minute": {
			{token: "good", reviews: 1},
			{after: 59 * time.Second, token: "good", reviews: 1},
			{after: 2 * time.Second, token: "good", reviews: 2},
		},
		"a yes is good though the cell is away": {
			{token: "good", reviews: 1},
			{do: down, token: "good", reviews: 1},
			{after: 61 * time.Second, token: "good", want: ReasonCellUnavailable, reviews: 2},
		},
		"a yes ends with the token": {
			{token: "short", reviews: 1},
			{after: 19 * time.Second, token: "short", reviews: 1},
			{after: time.Second, token: "short", want: ReasonExpired, reviews: 1},
		},
		"a pod that is gone is seen within a minute": {
			{token: "good", reviews: 1},
			{do: remove, after: 61 * time.Second, token: "good", want: ReasonRejected, reviews: 2},
		},
		"a no is good for ten seconds": {
			{token: "junk", want: ReasonRejected, reviews: 1},
			{token: "junk", want: ReasonRejected, reviews: 1},
			{after: 9 * time.Second, token: "junk", want: ReasonRejected, reviews: 1},
			{after: 2 * time.Second, token: "junk", want: ReasonRejected, reviews: 2},
		},
		"a no about one token is none about another": {
			{token: "junk", want: ReasonRejected, reviews: 1},
			{token: "good", reviews: 2},
			{token: "junk", want: ReasonRejected, reviews: 2},
		},
		"a cell that can't be asked is no verdict": {
			{do: down, token: "good", want: ReasonCellUnavailable, reviews: 1},
			{token: "good", want: ReasonCellUnavailable, reviews: 2},
			{do: up, token: "good", reviews: 3},
		},
	}
	for name, shows := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &api{keys: []signingKey{key}}
				v := validator(t, fleet, a)
				tokens := map[string]string{
					"good":  key.token(t, podClaims()),
					"short": key.token(t, podClaims().with(object{"exp": time.Now().Add(20 * time.Second).Unix()})),
					"junk":  stranger.token(t, podClaims()),
				}
				for i, s := range shows {
					time.Sleep(s.after)
					if s.do != nil {
						a.set(s.do)
					}
					_, err := v.Validate(t.Context(), tokens[s.token])
					if got := reasonOf(err); got != s.want {
						t.Errorf("show %d: got %v, want %q", i, err, s.want)
					}
					if _, reviews := a.counts(); reviews != s.reviews {
						t.Errorf("show %d: %d reviews, want %d", i, reviews, s.reviews)
					}
				}
			})
		})
	}
}

func TestManyWhoShowOneTokenCostOneReview(t *testing.T) {
	key, stranger := newKey(t, "k"), newKey(t, "stranger")
	for signer, want := range map[signingKey]Reason{key: "", stranger: ReasonRejected} {
		synctest.Test(t, func(t *testing.T) {
			a := &api{keys: []signingKey{key}, delay: time.Second}
			v := validator(t, fleet, a)
			token := signer.token(t, podClaims())
			var shows sync.WaitGroup
			for range 1000 {
				shows.Go(func() {
					if _, err := v.Validate(t.Context(), token); reasonOf(err) != want {
						t.Errorf("got %v, want %q", err, want)
					}
				})
			}
			shows.Wait()
			if _, reviews := a.counts(); reviews != 1 {
				t.Errorf("%d reviews, want 1", reviews)
			}
		})
	}
}

func TestReviewsAtOnceAreBounded(t *testing.T) {
	key := newKey(t, "k")
	synctest.Test(t, func(t *testing.T) {
		a := &api{keys: []signingKey{key}, delay: 600 * time.Millisecond}
		v := validator(t, fleet, a)
		var shows sync.WaitGroup
		var mu sync.Mutex
		got := map[Reason]int{}
		for range 30 {
			token := key.token(t, podClaims()) // ES256 signs differently each time
			shows.Go(func() {
				_, err := v.Validate(t.Context(), token)
				mu.Lock()
				defer mu.Unlock()
				got[reasonOf(err)]++
			})
		}
		shows.Wait()
		// Eight at once, eight when these are done, and no place within a second
		// for the others.
		if got[""] != 16 || got[ReasonRateLimited] != 14 || a.most != 8 {
			t.Errorf("got %v and %d at once, want 16 accepted, 14 %s and 8 at once", got, a.most, ReasonRateLimited)
		}
		if _, err := v.Validate(t.Context(), key.token(t, podClaims())); err != nil {
			t.Errorf("when all is over: %v", err)
		}
	})
}

func TestSlowCellIsGivenFiveSeconds(t *testing.T) {
	key := newKey(t, "k")
	synctest.Test(t, func(t *testing.T) {
		v := validator(t, fleet, &api{keys: []signingKey{key}, delay: time.Hour})
		start := time.Now()
		_, err := v.Validate(t.Context(), key.token(t, podClaims()))
		if got, want := text(err), "pod of cell:c1: CellUnavailable: context deadline exceeded"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("it took %s, want 5s", got)
		}
	})
}

func TestOneWhoLeavesEndsNoReview(t *testing.T) {
	key := newKey(t, "k")
	synctest.Test(t, func(t *testing.T) {
		a := &api{keys: []signingKey{key}, delay: 3 * time.Second}
		v := validator(t, fleet, a)
		token := key.token(t, podClaims())
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var shows sync.WaitGroup
		shows.Go(func() {
			if _, err := v.Validate(hasty, token); reasonOf(err) != ReasonCellUnavailable || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the hasty one: got %v, want %s", err, ReasonCellUnavailable)
			}
		})
		synctest.Wait()
		shows.Go(func() {
			if _, err := v.Validate(t.Context(), token); err != nil {
				t.Errorf("the patient one: %v", err)
			}
		})
		shows.Wait()
		if _, reviews := a.counts(); reviews != 1 {
			t.Errorf("%d reviews, want 1", reviews)
		}
	})
}

func TestVerdictsAreBoundedAndJunkPushesNoYesOut(t *testing.T) {
	key, stranger := newKey(t, "k"), newKey(t, "stranger")
	a := &api{keys: []signingKey{key}}
	v := validator(t, fleet, a)
	good, junk := key.token(t, podClaims()), stranger.token(t, podClaims())
	shown := func(token string, want Reason, reviews int) {
		t.Helper()
		if _, err := v.Validate(t.Context(), token); reasonOf(err) != want {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, got := a.counts(); got != reviews {
			t.Errorf("%d reviews, want %d", got, reviews)
		}
	}
	shown(good, "", 1)
	shown(junk, ReasonRejected, 2)
	head := junk[:strings.LastIndex(junk, ".")+1]
	for i := range maxVerdicts {
		shown(head+fmt.Sprintf("%086d", i), ReasonRejected, 3+i)
	}
	shown(good, "", 2+maxVerdicts)
	shown(junk, ReasonRejected, 3+maxVerdicts)
	if got := len(v.(*tokenReview).rejected.Keys()); got != maxVerdicts {
		t.Errorf("%d rejections are kept, want %d", got, maxVerdicts)
	}
}

type interrupted struct{ text string }

func (e *interrupted) Error() string { return e.text }

func TestNothingKeepsTheToken(t *testing.T) {
	key := newKey(t, "k")
	token := key.token(t, podClaims())
	signature := token[strings.LastIndex(token, ".")+1:]
	t.Run("verdicts are by its hash", func(t *testing.T) {
		v := validator(t, fleet, &api{keys: []signingKey{key}}).(*tokenReview)
		if _, err := v.Validate(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if keys := v.accepted.Keys(); len(keys) != 1 || keys[0] != sha256.Sum256([]byte(token)) {
			t.Errorf("kept by %v", keys)
		}
	})
	t.Run("an error that repeats it is told without", func(t *testing.T) {
		a := &api{err: &interrupted{"POST " + token + ": no " + signature + ", no answer"}}
		_, err := validator(t, fleet, a).Validate(t.Context(), token)
		if got, want := text(err), "pod of cell:c1: CellUnavailable: POST [redacted]: no [redacted], no answer"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if _, ok := errors.AsType[*interrupted](err); !ok {
			t.Error("the cause isn't found")
		}
		for ; err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error(), signature) {
				t.Errorf("%T holds it", err)
			}
		}
	})
	t.Run("a cell that repeats it isn't quoted", func(t *testing.T) {
		for name, alter := range map[string]func(*authenticationv1.TokenReviewStatus){
			"error":     func(s *authenticationv1.TokenReviewStatus) { s.Authenticated, s.Error = false, token },
			"audiences": func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{signature} },
			"username":  func(s *authenticationv1.TokenReviewStatus) { s.User.Username = signature },
			"extra": func(s *authenticationv1.TokenReviewStatus) {
				s.User.Extra["authentication.kubernetes.io/pod-uid"] = []string{signature}
			},
		} {
			a := &api{keys: []signingKey{key}, alter: alter}
			_, err := validator(t, fleet, a).Validate(t.Context(), token)
			if err == nil || strings.Contains(err.Error(), signature) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}
