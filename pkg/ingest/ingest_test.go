package ingest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/podidentity"
)

// The texts of the answers.
const (
	notFound  = "not found\n"
	method    = "only POST is served here\n"
	rejected  = "the token isn't accepted\n"
	tooLarge  = "the artifact is too large\n"
	tooMany   = "too many posts: try again later\n"
	notNow    = "not now: try again later\n"
	textPlain = "text/plain; charset=utf-8"
)

func TestOnePathIsServedAndNothingElse(t *testing.T) {
	const good = "/api/pods/work-1/artifacts/canary"
	name := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63) + "." + strings.Repeat("d", 61)
	tests := map[string]struct {
		method, path string
		code         int
		text         string
	}{
		"the path":                         {"POST", good, 204, ""},
		"a query changes nothing":          {"POST", good + "?pod=work-2", 204, ""},
		"a name of 253 bytes is looked up": {"POST", "/api/pods/" + name + "/artifacts/canary", 401, rejected},
		"a name with dots is looked up":    {"POST", "/api/pods/a.b/artifacts/canary", 401, rejected},
		"a name of 254 bytes":              {"POST", "/api/pods/" + name + "d/artifacts/canary", 404, notFound},
		"a name in capitals":               {"POST", "/api/pods/Work-1/artifacts/canary", 404, notFound},
		"a name that is empty":             {"POST", "/api/pods//artifacts/canary", 404, notFound},
		"a name that goes up":              {"POST", "/api/pods/../artifacts/canary", 404, notFound},
		"a name that is encoded":           {"POST", "/api/pods/work%2D1/artifacts/canary", 404, notFound},
		"a name with an encoded slash":     {"POST", "/api/pods/work-1%2Fx/artifacts/canary", 404, notFound},
		"an unknown kind":                  {"POST", "/api/pods/work-1/artifacts/log", 404, notFound},
		"a kind in capitals":               {"POST", "/api/pods/work-1/artifacts/Canary", 404, notFound},
		"no kind":                          {"POST", "/api/pods/work-1/artifacts/", 404, notFound},
		"more than a kind":                 {"POST", good + "/x", 404, notFound},
		"a slash at the end":               {"POST", good + "/", 404, notFound},
		"a doubled slash":                  {"POST", "/" + good, 404, notFound},
		"grants":                           {"POST", "/api/pods/work-1/grants/canary", 404, notFound},
		"another API of the hub":           {"POST", "/api/v1/secrets", 404, notFound},
		"the root":                         {"POST", "/", 404, notFound},
		"GET":                              {"GET", good, 405, method},
		"HEAD":                             {"HEAD", good, 405, method},
		"PUT":                              {"PUT", good, 405, method},
		"OPTIONS":                          {"OPTIONS", good, 405, method},
		"GET of an unknown kind":           {"GET", "/api/pods/work-1/artifacts/log", 404, notFound},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			s := newScene(t, Rates{})
			r := httptest.NewRequest(tc.method, tc.path, strings.NewReader("alive"))
			r.Header.Set("Authorization", "Bearer "+s.broughtKey.token(t, claimsFor("work-1", podUID)))
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if got := w.Body.String(); w.Code != tc.code || got != tc.text {
				t.Errorf("got %d %q, want %d %q", w.Code, got, tc.code, tc.text)
			}
			if served := tc.code == 204 || tc.code == 401; served != (len(s.records.trail) == 1) {
				t.Errorf("%d records", len(s.records.trail))
			}
		})
	}
}

// chunked hides how long a body is.
type chunked struct{ io.Reader }

func TestEachAnswer(t *testing.T) {
	protecting := http.Header{
		"Content-Security-Policy":   {"default-src 'none'; frame-ancestors 'none'"},
		"Referrer-Policy":           {"no-referrer"},
		"Strict-Transport-Security": {"max-age=31536000"},
		"X-Content-Type-Options":    {"nosniff"},
	}
	unauthorized := http.Header{"Content-Type": {textPlain}, "Www-Authenticate": {"Bearer"}}
	in := func(seconds string) http.Header {
		return http.Header{"Content-Type": {textPlain}, "Retry-After": {seconds}}
	}
	set := func(values ...string) func(*scene, *http.Request) {
		return func(_ *scene, r *http.Request) { r.Header["Authorization"] = values }
	}
	body := func(length int) func(*scene, *http.Request) {
		return func(_ *scene, r *http.Request) {
			r.ContentLength, r.Body = int64(length), io.NopCloser(strings.NewReader(strings.Repeat("x", length)))
		}
	}
	unknownLength := func(length int) func(*scene, *http.Request) {
		return func(_ *scene, r *http.Request) {
			r.ContentLength, r.Body = -1, io.NopCloser(chunked{strings.NewReader(strings.Repeat("x", length))})
		}
	}
	tests := map[string]struct {
		change func(*scene, *http.Request)
		rates  Rates
		reason Reason
		code   int
		text   string
		header http.Header
	}{
		"takes a post": {code: 204},
		"takes a scheme in other case": {change: func(_ *scene, r *http.Request) {
			r.Header.Set("Authorization", "bEARER"+r.Header.Get("Authorization")[6:])
		}, code: 204},
		"takes an empty body":                    {change: body(0), code: 204},
		"takes 1 KiB":                            {change: body(1024), code: 204},
		"takes 1 KiB of unknown length":          {change: unknownLength(1024), code: 204},
		"refuses no credential":                  {change: set(), reason: ReasonNoToken, code: 401, text: rejected, header: unauthorized},
		"refuses two":                            {change: set("Bearer a", "Bearer b"), reason: ReasonNoToken, code: 401, text: rejected, header: unauthorized},
		"refuses two in one":                     {change: set("Bearer a, Bearer b"), reason: ReasonNoToken, code: 401, text: rejected, header: unauthorized},
		"refuses another scheme":                 {change: set("Basic YTpi"), reason: ReasonNoToken, code: 401, text: rejected, header: unauthorized},
		"refuses an empty token":                 {change: set("Bearer "), reason: ReasonNoToken, code: 401, text: rejected, header: unauthorized},
		"refuses a token after two spaces":       {change: set("Bearer  a"), reason: ReasonNoToken, code: 401, text: rejected, header: unauthorized},
		"refuses a token over 16 KiB":            {change: set("Bearer " + strings.Repeat("a", 16<<10+1)), reason: ReasonNoToken, code: 401, text: rejected, header: unauthorized},
		"reads a token of 16 KiB":                {change: set("Bearer " + strings.Repeat("a", 16<<10)), reason: "Malformed", code: 401, text: rejected, header: unauthorized},
		"refuses over 1 KiB":                     {change: body(1025), reason: ReasonTooLarge, code: 413, text: tooLarge, header: http.Header{"Content-Type": {textPlain}, "Connection": {"close"}}},
		"refuses over 1 KiB of unknown length":   {change: unknownLength(1025), reason: ReasonTooLarge, code: 413, text: tooLarge, header: http.Header{"Content-Type": {textPlain}, "Connection": {"close"}}},
		"refuses an unknown pod":                 {change: func(s *scene, _ *http.Request) { delete(s.records.pods, "work-1") }, reason: ReasonUnknownPod, code: 401, text: rejected, header: unauthorized},
		"puts off a pod without recorded UID":    {change: func(s *scene, _ *http.Request) { s.records.pods["work-1"] = Expected{Registration: brought} }, reason: ReasonNotRecorded, code: 503, text: notNow, header: in("1")},
		"puts off a target that is half known":   {change: func(s *scene, _ *http.Request) { s.records.pods["work-1"] = Expected{UID: podUID} }, reason: ReasonUnprovable, code: 503, text: notNow, header: in("5")},
		"puts off while the keys are away":       {change: func(s *scene, _ *http.Request) { s.brought.err = errors.New("connection refused") }, reason: "KeysUnavailable", code: 503, text: notNow, header: in("5")},
		"puts off when a source posts too much":  {change: func(s *scene, r *http.Request) { s.sources.allow(source(r.RemoteAddr), time.Now()) }, rates: Rates{PerSource: 0.001}, reason: ReasonSourceRateLimited, code: 429, text: tooMany, header: in("1")},
		"puts off when a target is asked much":   {change: func(s *scene, _ *http.Request) { s.clean.allow(brought.Target, time.Now()) }, rates: Rates{PerTarget: 0.001}, reason: ReasonTargetRateLimited, code: 429, text: tooMany, header: in("1")},
		"puts off when all is asked much":        {change: func(s *scene, _ *http.Request) { s.total.allow(nil, time.Now()) }, rates: Rates{PerSecond: 0.001}, reason: ReasonTotalRateLimited, code: 429, text: tooMany, header: in("1")},
		"puts off where the receiver has faults": {change: func(s *scene, _ *http.Request) { s.records.receive = errors.New("conflict") }, code: 503, text: notNow, header: in("5")},
		"puts off where the trail has faults":    {change: func(s *scene, _ *http.Request) { s.records.lost = errors.New("disk full") }, code: 503, text: notNow, header: in("5")},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			s := newScene(t, tc.rates)
			r := httptest.NewRequest(http.MethodPost, "/api/pods/work-1/artifacts/canary", strings.NewReader("alive"))
			r.Header.Set("Authorization", "Bearer "+s.broughtKey.token(t, claimsFor("work-1", podUID)))
			if tc.change != nil {
				tc.change(s, r)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if got := w.Body.String(); w.Code != tc.code || got != tc.text || s.records.reason() != tc.reason {
				t.Errorf("got %d %q for %q, want %d %q for %q", w.Code, got, s.records.reason(), tc.code, tc.text, tc.reason)
			}
			want := protecting.Clone()
			for name, values := range tc.header {
				want[name] = values
			}
			if diff := cmp.Diff(want, w.Header()); diff != "" {
				t.Errorf("headers differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatThePodHandsInAndWhatIsRecorded(t *testing.T) {
	ignored := cmpopts.IgnoreFields(audit.Record{}, "Time", "RequestID", "DurationMS")
	s := newScene(t, Rates{})
	s.shown(t, "work-1", s.broughtKey.token(t, claimsFor("work-1", podUID)), someone, "")
	s.shown(t, "work-3", s.broughtKey.token(t, claimsFor("work-3", podUID)), someone, "Rejected")
	s.records.receive = errors.New("conflict")
	s.post("work-2", s.otherKey.token(t, claimsFor("work-2", podUID)), someone)

	wantPosts := []Post{{
		Pod:      podidentity.Pod{Namespace: "team", ServiceAccount: "runner", Name: "work-1", UID: podUID, Target: brought.Target},
		Expected: Expected{Registration: brought, UID: podUID, Run: "run-1", Target: "target:t1"},
		Kind:     KindCanary, Body: []byte("alive"),
	}}
	if diff := cmp.Diff(wantPosts, s.records.posts, cmpopts.IgnoreFields(Post{}, "At")); diff != "" {
		t.Errorf("posts differ (-want +got):\n%s", diff)
	}
	wantTrail := []audit.Record{
		{Event: audit.EventArtifact, Outcome: audit.OutcomeAllowed, Kind: "canary", Name: "work-1", Target: "target:t1", Run: "run-1"},
		{Event: audit.EventArtifactRefused, Outcome: audit.OutcomeRefused, Kind: "canary", Name: "work-3", Target: "cell:c1", Run: "run-3", Reason: "Rejected"},
		{Event: audit.EventArtifact, Outcome: audit.OutcomeFailed, Kind: "canary", Name: "work-2", Target: "target:t2", Run: "run-2"},
	}
	if diff := cmp.Diff(wantTrail, s.records.trail, ignored); diff != "" {
		t.Errorf("records differ (-want +got):\n%s", diff)
	}
	if r := s.records.trail[0]; r.RequestID == "" || r.Time.IsZero() || r.DurationMS <= 0 || s.records.posts[0].At.IsZero() {
		t.Errorf("no id or time: %+v", r)
	}
}

// Whoever runs a target can post as its pod for ever.
func TestWhatWasTakenBeforeIsAnsweredAndNotRecorded(t *testing.T) {
	s := newScene(t, Rates{})
	s.records.old = true
	w := s.post("work-1", s.broughtKey.token(t, claimsFor("work-1", podUID)), someone)
	if w.Code != http.StatusNoContent || len(s.records.trail) != 0 {
		t.Errorf("got %d and %d records", w.Code, len(s.records.trail))
	}
}

// A reason that nobody has thought of is a rejection.
func TestEachReasonHasItsCode(t *testing.T) {
	want := map[int][]Reason{
		401: {"Algorithm", "Audience", "Expired", "Issuer", "Lifetime", "Malformed", "Namespace", "NoPod", "NoToken", "NotYetValid",
			"OtherPod", "Rejected", "ServiceAccount", "Signature", "UnknownKey", "UnknownPod", "another"},
		408: {"Interrupted"},
		413: {"TooLarge"},
		429: {"RateLimited", "SourceRateLimited", "TargetRateLimited", "TotalRateLimited"},
		503: {"CellUnavailable", "KeysUnavailable", "NotRecorded", "Unprovable"},
	}
	got := map[int][]Reason{}
	for _, reason := range append(Reasons(), "another") {
		a := reason.answer()
		got[a.code] = append(got[a.code], reason)
		if wait := a.code == 429 || a.code == 503; wait != (a.retry > 0) {
			t.Errorf("%s is %d with %s to wait", reason, a.code, a.retry)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b Reason) bool { return a < b })); diff != "" {
		t.Errorf("codes differ (-want +got):\n%s", diff)
	}
}

func TestEachKindFitsWhatIsDrained(t *testing.T) {
	for _, kind := range Kinds() {
		if limit := kind.limit(); limit <= 0 || limit > maxUnread {
			t.Errorf("%s: %d bytes", kind, limit)
		}
	}
}
