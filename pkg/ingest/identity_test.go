package ingest

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/podidentity"
)

func TestPodIdentity(t *testing.T) {
	kubernetes := func(namespace, serviceAccount string) func(string) object {
		return func(name string) object {
			return object{"kubernetes.io": bound(namespace, serviceAccount, object{"name": name, "uid": podUID})}
		}
	}
	pod := func(uid string) func(string) object {
		return func(name string) object {
			return object{"kubernetes.io": bound("team", "runner", object{"name": name, "uid": uid})}
		}
	}
	always := func(o object) func(string) object { return func(string) object { return o } }
	tests := map[string]struct {
		change func(name string) object
		key    func(*scene) signingKey
		want   map[podidentity.Mode]Reason
		asked  int
	}{
		"takes the pod's own":                {want: both(""), asked: 1},
		"refuses another pod's":              {change: always(object{"kubernetes.io": bound("team", "runner", object{"name": "work-9", "uid": podUID})}), want: both(ReasonOtherPod)},
		"refuses another UID of the name":    {change: pod("ffffffff-7a2d-4e0b-9c1d-3f1a2b3c4d5e"), want: both(ReasonOtherPod)},
		"refuses another namespace":          {change: kubernetes("other", "runner"), want: both("Namespace")},
		"refuses another ServiceAccount":     {change: kubernetes("team", "admin"), want: both("ServiceAccount")},
		"refuses no pod":                     {change: always(object{"kubernetes.io": bound("team", "runner", nil)}), want: both("NoPod")},
		"refuses a pod without UID":          {change: pod(""), want: both("NoPod")},
		"refuses no claims of Kubernetes":    {change: always(object{"kubernetes.io": nil}), want: both("NoPod")},
		"refuses claims that can't be read":  {change: always(object{"kubernetes.io": "work-1"}), want: both("Malformed")},
		"refuses an expired one":             {change: always(object{"exp": time.Now().Unix() - 1}), want: both("Expired")},
		"refuses one without expiry":         {change: always(object{"exp": nil}), want: both("Expired")},
		"refuses another audience":           {change: always(object{"aud": []string{issuer}}), want: both("Audience")},
		"refuses another issuer":             {change: always(object{"iss": "https://evil.example"}), want: both("Issuer")},
		"refuses another target's signature": {key: func(s *scene) signingKey { return s.otherKey }, want: map[podidentity.Mode]Reason{podidentity.ModeJWKS: "UnknownKey", podidentity.ModeTokenReview: "Rejected"}, asked: 1},
		"refuses the same under a known key id": {key: func(s *scene) signingKey { return signingKey{"k", s.otherKey.private} },
			want: map[podidentity.Mode]Reason{podidentity.ModeJWKS: "Signature", podidentity.ModeTokenReview: "Rejected"}, asked: 1},
	}
	for sentence, tc := range tests {
		for mode, name := range map[podidentity.Mode]string{podidentity.ModeJWKS: "work-1", podidentity.ModeTokenReview: "work-3"} {
			t.Run(sentence+"/"+string(mode), func(t *testing.T) {
				s := newScene(t, Rates{})
				key := map[string]signingKey{"work-1": s.broughtKey, "work-3": s.cell}[name]
				if tc.key != nil {
					key = tc.key(s)
				}
				members := object{}
				if tc.change != nil {
					members = tc.change(name)
				}
				s.shown(t, name, key.token(t, claimsFor(name, podUID).with(members)), someone, tc.want[mode])
				if got := s.asked(); got != tc.asked {
					t.Errorf("an API was asked %d times, want %d", got, tc.asked)
				}
				if taken := len(s.records.posts) == 1; taken != (tc.want[mode] == "") {
					t.Errorf("taken: %t", taken)
				}
			})
		}
	}
}

func both(reason Reason) map[podidentity.Mode]Reason {
	return map[podidentity.Mode]Reason{podidentity.ModeJWKS: reason, podidentity.ModeTokenReview: reason}
}

// deceived is a validator that takes any token for one pod's.
type deceived podidentity.Pod

func (d deceived) For(podidentity.Registration) (podidentity.Validator, error) { return d, nil }

func (d deceived) Validate(context.Context, string) (podidentity.Pod, error) {
	return podidentity.Pod(d), nil
}

// What the token says before it's checked is not what counts in the end.
func TestTheCheckedPodMustBeTheRecordedOne(t *testing.T) {
	own := podidentity.Pod{Namespace: "team", ServiceAccount: "runner", Name: "work-1", UID: podUID, Target: brought.Target}
	changed := func(change func(p *podidentity.Pod)) podidentity.Pod {
		p := own
		change(&p)
		return p
	}
	for sentence, tc := range map[string]struct {
		pod  podidentity.Pod
		want Reason
	}{
		"its own":        {own, ""},
		"another name":   {changed(func(p *podidentity.Pod) { p.Name = "work-2" }), ReasonOtherPod},
		"another UID":    {changed(func(p *podidentity.Pod) { p.UID = "u2" }), ReasonOtherPod},
		"another target": {changed(func(p *podidentity.Pod) { p.Target.UID = "t2" }), ReasonOtherPod},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newScene(t, Rates{})
			s.validators = deceived(tc.pod)
			s.shown(t, "work-1", s.broughtKey.token(t, claimsFor("work-1", podUID)), someone, tc.want)
		})
	}
}

func TestTargetsOfOneIssuerStringDontVouchForEachOther(t *testing.T) {
	s := newScene(t, Rates{})
	s.shown(t, "work-1", s.broughtKey.token(t, claimsFor("work-1", podUID)), someone, "")
	s.shown(t, "work-2", s.otherKey.token(t, claimsFor("work-2", podUID)), someone, "")
	s.shown(t, "work-1", s.otherKey.token(t, claimsFor("work-1", podUID)), someone, "UnknownKey")
	s.shown(t, "work-2", s.broughtKey.token(t, claimsFor("work-2", podUID)), someone, "UnknownKey")
	s.shown(t, "work-3", s.broughtKey.token(t, claimsFor("work-3", podUID)), someone, "Rejected")
}

func TestThousandPostsWithUnknownKeysReadTheKeysOncePerCooldown(t *testing.T) {
	stranger := newKey(t, "stranger")
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Rates{})
		s.brought.delay = time.Second
		flood := func(want int) {
			t.Helper()
			var posts sync.WaitGroup
			for range 10 {
				token := stranger.token(t, claimsFor("work-1", podUID))
				for range 100 {
					posts.Go(func() {
						if w := s.post("work-1", token, someone); w.Code != http.StatusUnauthorized {
							t.Errorf("got %d", w.Code)
						}
					})
				}
			}
			posts.Wait()
			if got := s.brought.asked(); got != want {
				t.Errorf("the keys were read %d times, want %d", got, want)
			}
		}
		flood(1)
		flood(1)
		time.Sleep(10 * time.Second)
		flood(2)
	})
}

func TestRotationFailsNoPod(t *testing.T) {
	after := newKey(t, "after")
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Rates{})
		fresh := func(key signingKey) string { return key.token(t, claimsFor("work-1", podUID)) }
		s.shown(t, "work-1", fresh(s.broughtKey), someone, "")
		time.Sleep(10 * time.Second)
		s.brought.set(func(a *api) { a.keys = []signingKey{after} })
		s.shown(t, "work-1", fresh(after), someone, "")
		s.shown(t, "work-1", fresh(s.broughtKey), someone, "")
		time.Sleep(9 * time.Minute)
		s.shown(t, "work-1", fresh(s.broughtKey), someone, "")
		time.Sleep(time.Minute)
		s.shown(t, "work-1", fresh(s.broughtKey), someone, "UnknownKey")
		s.shown(t, "work-1", fresh(after), someone, "")
	})
}

// A key that came up within the cooldown is refused, and taken as soon as the
// keys may be read again.
func TestTokenThatIsAheadOfTheKeysIsTakenAfterTheCooldown(t *testing.T) {
	after := newKey(t, "after")
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Rates{PerSource: 20, PerSecond: 200, PerTarget: DefaultPerTarget})
		s.shown(t, "work-1", s.broughtKey.token(t, claimsFor("work-1", podUID)), someone, "")
		time.Sleep(5 * time.Second)
		s.brought.set(func(a *api) { a.keys = []signingKey{after} })
		token := after.token(t, claimsFor("work-1", podUID))
		for range 10 {
			s.shown(t, "work-1", token, someone, "UnknownKey")
			time.Sleep(time.Second)
		}
		time.Sleep(time.Millisecond)
		s.shown(t, "work-1", token, someone, "")
	})
}

func TestVerdictsThroughTime(t *testing.T) {
	stranger := newKey(t, "stranger")
	type show struct {
		after time.Duration
		do    func(*scene)
		token string
		want  Reason
		asked int // since the beginning
	}
	down := func(s *scene) { s.fleet.set(func(a *api) { a.err = errors.New("connection refused") }) }
	up := func(s *scene) { s.fleet.set(func(a *api) { a.err = nil }) }
	record := func(e Expected) func(*scene) { return func(s *scene) { s.records.expect("work-3", e) } }
	moved := fleet
	moved.Namespace = "elsewhere"
	tests := map[string][]show{
		"a yes is good for a minute": {
			{token: "good", asked: 1}, {after: 59 * time.Second, do: down, token: "good", asked: 1},
			{after: 2 * time.Second, token: "good", want: "CellUnavailable", asked: 2},
		},
		"a yes ends with the token": {
			{token: "short", asked: 1}, {after: 19 * time.Second, token: "short", asked: 1}, {after: time.Second, token: "short", want: "Expired", asked: 1},
		},
		"a yes is no good for another UID": {
			{token: "good", asked: 1}, {do: record(Expected{Registration: fleet, UID: "u2"}), token: "good", want: ReasonOtherPod, asked: 1},
		},
		"a yes is no good once the target changed": {
			{token: "good", asked: 1}, {do: record(Expected{Registration: moved, UID: podUID}), token: "good", want: "Namespace", asked: 1},
		},
		"a yes is no good once the pod is forgotten": {
			{token: "good", asked: 1}, {do: func(s *scene) { delete(s.records.pods, "work-3") }, token: "good", want: ReasonUnknownPod, asked: 1},
		},
		"a no is good for ten seconds": {
			{token: "junk", want: "Rejected", asked: 1}, {after: 9 * time.Second, token: "junk", want: "Rejected", asked: 1},
			{after: 2 * time.Second, token: "junk", want: "Rejected", asked: 2},
		},
		"a no about one token is none about another": {
			{token: "junk", want: "Rejected", asked: 1}, {token: "good", asked: 2}, {token: "junk", want: "Rejected", asked: 2},
		},
		"a pod that the hub didn't know yet isn't refused for long": {
			{do: func(s *scene) { delete(s.records.pods, "work-3") }, token: "good", want: ReasonUnknownPod, asked: 0},
			{do: record(Expected{Registration: fleet, UID: podUID}), token: "good", asked: 1},
		},
		"a UID that isn't recorded yet is no rejection": {
			{do: record(Expected{Registration: fleet}), token: "good", want: ReasonNotRecorded, asked: 1},
			{token: "good", want: ReasonNotRecorded, asked: 1},
			{do: record(Expected{Registration: fleet, UID: podUID}), token: "good", asked: 1},
		},
		"a pod without recorded UID is hidden from strangers": {
			{do: record(Expected{Registration: fleet}), token: "junk", want: "Rejected", asked: 1},
			{token: "other", want: ReasonOtherPod, asked: 1},
		},
		"a cell that can't be asked is no verdict": {
			{do: down, token: "good", want: "CellUnavailable", asked: 1}, {token: "good", want: "CellUnavailable", asked: 2}, {do: up, token: "good", asked: 3},
		},
	}
	for sentence, shows := range tests {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, Rates{})
				tokens := map[string]string{
					"good":  s.cell.token(t, claimsFor("work-3", podUID)),
					"short": s.cell.token(t, claimsFor("work-3", podUID).with(object{"exp": time.Now().Unix() + 20})),
					"junk":  stranger.token(t, claimsFor("work-3", podUID)),
					"other": s.cell.token(t, claimsFor("work-4", podUID)),
				}
				for i, show := range shows {
					time.Sleep(show.after)
					if show.do != nil {
						show.do(s)
					}
					s.shown(t, "work-3", tokens[show.token], someone, show.want)
					if got := s.fleet.asked(); got != show.asked {
						t.Errorf("show %d: the cell was asked %d times, want %d", i, got, show.asked)
					}
				}
			})
		})
	}
}

// counting is a validator that counts, takes its time, and says the same always.
type counting struct {
	deceived
	err   error
	asked *atomic.Int64
}

func (c counting) For(podidentity.Registration) (podidentity.Validator, error) { return c, nil }

func (c counting) Validate(ctx context.Context, token string) (podidentity.Pod, error) {
	c.asked.Add(1)
	time.Sleep(time.Second)
	pod, _ := c.deceived.Validate(ctx, token)
	return pod, c.err
}

func TestOneTokenIsOneCheckHoweverManyShowIt(t *testing.T) {
	own := podidentity.Pod{Namespace: "team", ServiceAccount: "runner", Name: "work-1", UID: podUID, Target: brought.Target}
	for sentence, tc := range map[string]struct {
		err    error
		want   Reason
		checks []int64 // by 1,000 posts at once: at 0 s, 9 s, 11 s and 61 s
	}{
		"an accepted one is checked each minute":  {nil, "", []int64{1, 1, 1, 2}},
		"a rejected one each ten seconds":         {&podidentity.Failure{Reason: podidentity.ReasonRejected}, "Rejected", []int64{1, 1, 2, 3}},
		"one that can't be checked at every show": {&podidentity.Failure{Reason: podidentity.ReasonCellUnavailable}, "CellUnavailable", []int64{1, 2, 3, 4}},
		"a fault is no rejection":                 {errors.New("broken"), "KeysUnavailable", []int64{1, 2, 3, 4}},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, Rates{PerTarget: 4, PerSecond: 4})
				asked := &atomic.Int64{}
				s.validators = counting{deceived(own), tc.err, asked}
				token, began := s.broughtKey.token(t, claimsFor("work-1", podUID)), time.Now()
				p := &post{name: "work-1", expected: s.records.pods["work-1"], known: true}
				for i, at := range []time.Duration{0, 9 * time.Second, 11*time.Second + time.Millisecond, 61*time.Second + time.Millisecond} {
					time.Sleep(time.Until(began.Add(at)))
					var posts sync.WaitGroup
					for range 1000 {
						posts.Go(func() {
							if got := s.identify(t.Context(), p, token); got != tc.want {
								t.Errorf("at %s: got %q, want %q", at, got, tc.want)
							}
						})
					}
					posts.Wait()
					if got := asked.Load(); got != tc.checks[i] {
						t.Errorf("at %s: %d checks, want %d", at, got, tc.checks[i])
					}
				}
			})
		})
	}
}

func TestStrangerCantTellWhichPodsThereAre(t *testing.T) {
	s := newScene(t, Rates{PerSecond: 0.001, PerTarget: 0.001})
	stranger := newKey(t, "k")
	tokens := map[string]func(name string) string{
		"junk":          func(string) string { return "junk" },
		"another pod's": func(string) string { return s.broughtKey.token(t, claimsFor("work-9", podUID)) },
		"a guess":       func(name string) string { return stranger.token(t, claimsFor(name, "f1a2b3c4")) },
	}
	for sentence, token := range tokens {
		for range 10 {
			known, unknown := s.post("work-1", token("work-1"), someone), s.post("work-8", token("work-8"), someone)
			if known.Code != 401 || known.Code != unknown.Code || known.Body.String() != unknown.Body.String() {
				t.Errorf("%s: %d %q of a pod that there is, %d %q of another", sentence, known.Code, known.Body, unknown.Code, unknown.Body)
			}
			if diff := cmp.Diff(known.Header(), unknown.Header()); diff != "" {
				t.Errorf("%s: headers differ (-known +unknown):\n%s", sentence, diff)
			}
		}
	}
	if got := s.asked(); got != 0 {
		t.Errorf("an API was asked %d times", got)
	}
	s.shown(t, "work-1", s.broughtKey.token(t, claimsFor("work-1", podUID)), someone, "") // no rate was touched
}

func TestNothingKeepsTheToken(t *testing.T) {
	s := newScene(t, Rates{PerSource: 20, PerTarget: 20})
	good, junk := s.broughtKey.token(t, claimsFor("work-1", podUID)), s.otherKey.token(t, claimsFor("work-1", podUID))
	s.shown(t, "work-1", good, someone, "")
	s.shown(t, "work-1", junk, someone, "UnknownKey")
	p := &post{name: "work-1", expected: s.records.pods["work-1"]}
	if diff := cmp.Diff([]any{fingerprint(p, good)}, s.accepted.Keys()); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{fingerprint(p, junk)}, s.rejected.Keys()); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
	for _, record := range s.records.trail {
		if text := record.Message + record.Reason + record.Name; strings.Contains(text, good) || strings.Contains(text, junk) {
			t.Errorf("the trail has it")
		}
	}
}

func TestFingerprintTellsAllApartThatAVerdictRestsOn(t *testing.T) {
	seen := map[[sha256.Size]byte]string{}
	add := func(what string, p post, token string) {
		key := fingerprint(&p, token)
		if twin, ok := seen[key]; ok {
			t.Errorf("%s is as %s", what, twin)
		}
		seen[key] = what
	}
	base := post{name: "work-1", expected: Expected{Registration: brought, UID: podUID}}
	changed := func(change func(p *post)) post {
		p := base
		change(&p)
		return p
	}
	add("the pod", base, "ab")
	add("another token", base, "a")
	add("a token that runs into the name", changed(func(p *post) { p.name = "bwork-1" }), "a")
	add("no UID", changed(func(p *post) { p.expected.UID = "" }), "ab")
	r := func(change func(r *podidentity.Registration)) post {
		return changed(func(p *post) { change(&p.expected.Registration) })
	}
	add("target", r(func(r *podidentity.Registration) { r.Target.UID = "x" }), "ab")
	add("mode", r(func(r *podidentity.Registration) { r.Target.Mode = "x" }), "ab")
	add("endpoint", r(func(r *podidentity.Registration) { r.Endpoint = "x" }), "ab")
	add("CA", r(func(r *podidentity.Registration) { r.CABundle = "x" }), "ab")
	add("issuer", r(func(r *podidentity.Registration) { r.Issuer = "x" }), "ab")
	add("audience", r(func(r *podidentity.Registration) { r.Audience = "x" }), "ab")
	add("namespace", r(func(r *podidentity.Registration) { r.Namespace = "x" }), "ab")
	add("ServiceAccount", r(func(r *podidentity.Registration) { r.ServiceAccount = "x" }), "ab")
}
