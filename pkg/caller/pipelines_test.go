package caller

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/test/issuer"
)

func TestPipelineIsLetIn(t *testing.T) {
	ci := startIssuer(t, issuer.Options{Path: "/ci"})
	p, _ := newPipelines(t, keyset.Options{}, trust{issuer: ci, mappings: `{
	  username: {expression: "'job:' + claims.repository"}, uid: {claim: repository_id},
	  groups: {expression: "[claims.repository_owner, claims.environment]"},
	  extra: [{key: claims.cellcast.io/ref, valueExpression: claims.ref}, {key: claims.cellcast.io/nothing, valueExpression: "''"}]}`})
	for _, alg := range []string{issuer.RS256, issuer.ES256} {
		response, ok, err := p.AuthenticateToken(t.Context(), sign(t, ci, issuer.Signing{Alg: alg}))
		if !ok || err != nil {
			t.Fatalf("%s: got %v, %v", alg, ok, err)
		}
		want := &Pipeline{
			Issuer:  ci.URL(),
			Subject: "repo:octo-org/shop:environment:production",
			Name:    "job:octo-org/shop",
			Groups:  []string{"octo-org", "production"},
			UID:     "42",
			Extra: map[string][]string{
				"claims.cellcast.io/ref":                     {"refs/heads/main"},
				"authentication.kubernetes.io/credential-id": {"JTI=example-42"},
			},
		}
		if diff := cmp.Diff(want, response.User); diff != "" {
			t.Errorf("%s (-want +got):\n%s", alg, diff)
		}
	}
}

func TestPipelineIsRefused(t *testing.T) {
	ci, stranger := startIssuer(t, issuer.Options{}), startIssuer(t, issuer.Options{})
	p, _ := newPipelines(t, keyset.Options{}, trust{issuer: ci})
	at := func(d time.Duration) (int64, string) {
		when := time.Now().Add(d)
		return when.Unix(), when.UTC().Format(time.RFC3339)
	}
	past, pastText := at(-time.Second)
	future, futureText := at(time.Hour)
	twoIssuers, err := ci.SignPayload(fmt.Appendf(nil, `{"iss":%q,"sub":"a","aud":%q,"exp":%d,"ISS":%q}`, ci.URL(), audience, future, stranger.URL()), issuer.Signing{})
	if err != nil {
		t.Fatal(err)
	}
	of := "issuer \"" + ci.URL() + "\": "

	tests := map[string]struct {
		token  string
		reason Reason
		text   string
	}{
		"no token":                                {"", ReasonMalformed, "the token is not a compact JWT of at most 16 KiB"},
		"words":                                   {"let.me.in", ReasonMalformed, "the token is not a compact JWT of at most 16 KiB"},
		"a token of 17 KiB":                       {sign(t, ci, issuer.Signing{}, "pad", strings.Repeat("a", 13<<10)), ReasonMalformed, "the token is not a compact JWT of at most 16 KiB"},
		"alg none":                                {sign(t, ci, issuer.Signing{Alg: issuer.None}), ReasonAlgorithm, "the token is not signed by an asymmetric algorithm that is accepted"},
		"the public key as a secret":              {sign(t, ci, issuer.Signing{Alg: issuer.HS256}), ReasonAlgorithm, "the token is not signed by an asymmetric algorithm that is accepted"},
		"a cut-off signature":                     {sign(t, ci, issuer.Signing{Unsigned: true}), ReasonSignature, "the token's signature is missing or wrong"},
		"an unknown issuer":                       {sign(t, stranger, issuer.Signing{}), ReasonIssuer, `no issuer "` + stranger.URL() + `" is configured`},
		"no issuer":                               {sign(t, ci, issuer.Signing{}, "iss", nil), ReasonIssuer, `no issuer "" is configured`},
		"an issuer that differs in a /":           {sign(t, ci, issuer.Signing{}, "iss", ci.URL()+"/"), ReasonIssuer, `no issuer "` + ci.URL() + `/" is configured`},
		"an issuer that differs in case":          {twoIssuers, ReasonMalformed, of + "the issuer is ambiguous: claims that differ in case alone"},
		"a known issuer and a foreign key":        {sign(t, stranger, issuer.Signing{}, "iss", ci.URL()), ReasonSignature, of + "the token's signature is missing or wrong"},
		"an unpublished key":                      {sign(t, ci, issuer.Signing{Key: issuer.Unpublished}), ReasonUnknownKey, of + "the token is signed by a key that its issuer doesn't publish"},
		"an unpublished key under a published id": {sign(t, ci, issuer.Signing{Key: issuer.Unpublished, KeyID: "key-1-rsa"}), ReasonSignature, of + "the token's signature is missing or wrong"},
		"a wrong audience":                        {sign(t, ci, issuer.Signing{}, "aud", "sts.example.com"), ReasonAudience, of + `the audience is ["sts.example.com"], not one of ["cellcast.io/hub"]`},
		"no audience":                             {sign(t, ci, issuer.Signing{}, "aud", nil), ReasonAudience, of + `the audience is [], not one of ["cellcast.io/hub"]`},
		"no subject":                              {sign(t, ci, issuer.Signing{}, "sub", nil), ReasonSubject, of + "there is no subject"},
		"an expired token":                        {sign(t, ci, issuer.Signing{}, "exp", past), ReasonExpired, of + "the token expired at " + pastText},
		"no expiry":                               {sign(t, ci, issuer.Signing{}, "exp", nil), ReasonExpired, of + "there is no expiry"},
		"a token that begins in an hour":          {sign(t, ci, issuer.Signing{}, "nbf", future, "exp", future+600), ReasonNotYetValid, of + "the token is not valid before " + futureText},
		"a token issued in an hour":               {sign(t, ci, issuer.Signing{}, "iat", future, "exp", future+600), ReasonNotYetValid, of + "the token was issued in the future, at " + futureText},
		"a token of ten years":                    {sign(t, ci, issuer.Signing{}, "iat", past, "exp", past+315360000), ReasonLifetime, of + "the token lives for 87600h0m0s, more than 24h0m0s"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			response, ok, err := p.AuthenticateToken(t.Context(), tc.token)
			if ok || response != nil {
				t.Fatalf("it was let in as %v", response)
			}
			wantFailure(t, err, tc.reason, string(tc.reason)+": "+tc.text, tc.token)
		})
	}
	if got := stranger.Fetches(); got != (issuer.Fetches{}) {
		t.Errorf("the unknown issuer was asked: %+v", got)
	}
	if got := ci.Fetches(); got.Keys > 1 {
		t.Errorf("%d fetches of keys within a cooldown, want 1", got.Keys)
	}
}

// What the claim mappings and rules of an entry may do to a token that is good
// in itself.
func TestMappings(t *testing.T) {
	ci := startIssuer(t, issuer.Options{})
	const byName = `{username: {expression: "claims.?name.orValue('')"}, groups: {expression: "claims.?teams.orValue([])"}}`
	tests := map[string]struct {
		entry   trust
		changes []any
		reason  Reason // "" where it's let in
		text    string
		user    string // where it's let in
	}{
		"a username in system: is refused": {entry: trust{mappings: byName}, changes: []any{"name", "system:admin"},
			reason: ReasonReservedName, text: `claimMappings.username yields "system:admin": names that begin with system: or cellcast.io: are reserved`},
		"a username in cellcast.io: is refused": {entry: trust{mappings: byName}, changes: []any{"name", "cellcast.io:reporter:eu-1"},
			reason: ReasonReservedName, text: `claimMappings.username yields "cellcast.io:reporter:eu-1": names that begin with system: or cellcast.io: are reserved`},
		"a group in system: is refused": {entry: trust{mappings: byName}, changes: []any{"name", "a", "teams", []string{"b", "system:masters"}},
			reason: ReasonReservedName, text: `claimMappings.groups yields "system:masters": names that begin with system: or cellcast.io: are reserved`},
		"a group in cellcast.io: is refused": {entry: trust{mappings: byName}, changes: []any{"name", "a", "teams", "cellcast.io:reporters"},
			reason: ReasonReservedName, text: `claimMappings.groups yields "cellcast.io:reporters": names that begin with system: or cellcast.io: are reserved`},
		"an empty username by claim is refused": {entry: trust{mappings: `{username: {claim: name, prefix: ""}}`}, changes: []any{"name", ""},
			reason: ReasonReservedName, text: "claimMappings.username yields no name"},
		"a name that looks like another issuer's pipeline is only a name": {entry: trust{mappings: byName}, changes: []any{"name", "pipeline:https://other#root"},
			user: "pipeline:" + ci.URL() + "#pipeline:https://other#root"},
		"a missing claim is refused": {entry: trust{mappings: `{username: {claim: email, prefix: ""}}`},
			reason: ReasonClaims, text: `the issuer's configuration refuses the token: oidc: parse username claims "email": claim not present`},
		"a claim rule refuses": {entry: trust{rules: `claimValidationRules: [{expression: "claims.ref == 'refs/heads/prod'", message: only prod}]`},
			reason: ReasonClaims, text: `the issuer's configuration refuses the token: oidc: error evaluating claim validation expression: validation expression 'claims.ref == 'refs/heads/prod'' failed: only prod`},
		"a user rule sees the mapped names and claims, and neither prefix, iss nor sub": {
			entry: trust{rules: `userValidationRules: [{expression: "user.username == 'repo:octo-org/shop:environment:production' && size(user.groups) == 0 && user.extra.all(k, k == 'claims.cellcast.io/repository' || k == 'authentication.kubernetes.io/credential-id')"}]`},
			user:  "pipeline:" + ci.URL() + "#repo:octo-org/shop:environment:production"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.entry.issuer = ci
			p, _ := newPipelines(t, keyset.Options{}, tc.entry)
			token := sign(t, ci, issuer.Signing{}, tc.changes...)
			response, _, err := p.AuthenticateToken(t.Context(), token)
			if tc.reason != "" {
				wantFailure(t, err, tc.reason, string(tc.reason)+": issuer \""+ci.URL()+"\": "+tc.text, token)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := response.User.GetName(); got != tc.user {
				t.Errorf("user %q, want %q", got, tc.user)
			}
		})
	}
}

func TestJunkDrivesNoFetches(t *testing.T) {
	ci, stranger := startIssuer(t, issuer.Options{}), startIssuer(t, issuer.Options{})
	clock := testingclock.NewFakeClock(time.Now())
	p, _ := newPipelines(t, keyset.Options{Clock: clock}, trust{issuer: ci})
	flood := func(n int, token string) {
		t.Helper()
		for range n {
			if _, ok, _ := p.AuthenticateToken(t.Context(), token); ok {
				t.Fatal("junk was let in")
			}
		}
	}
	for _, junk := range []string{
		"junk",
		sign(t, stranger, issuer.Signing{}),
		sign(t, ci, issuer.Signing{}, "aud", "other"),
		sign(t, ci, issuer.Signing{}, "exp", 1),
		sign(t, ci, issuer.Signing{Alg: issuer.None}),
		sign(t, ci, issuer.Signing{Unsigned: true}),
	} {
		flood(500, junk)
	}
	if got := ci.Fetches(); got != (issuer.Fetches{}) {
		t.Errorf("junk that is wrong by its claims made the hub fetch %+v", got)
	}
	unknown := sign(t, ci, issuer.Signing{KeyID: "unknown"})
	for range 4 {
		flood(2_500, unknown)
		clock.Step(10 * time.Second)
	}
	if got, want := ci.Fetches(), (issuer.Fetches{Discovery: 4, Keys: 4}); got != want {
		t.Errorf("10,000 unknown key ids over four cooldowns made the hub fetch %+v, want %+v", got, want)
	}
	if got := stranger.Fetches(); got != (issuer.Fetches{}) {
		t.Errorf("the unknown issuer was asked: %+v", got)
	}
	if _, ok, err := p.AuthenticateToken(t.Context(), sign(t, ci, issuer.Signing{})); !ok {
		t.Errorf("an honest pipeline after the flood: %v", err)
	}
}

func TestDistributedClaimsAreNotFetched(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	ci := startIssuer(t, issuer.Options{})
	p, _ := newPipelines(t, keyset.Options{}, trust{issuer: ci, mappings: `{username: {claim: sub, prefix: ""}, groups: {expression: "claims.?groups.orValue([])"}}`})
	response, ok, err := p.AuthenticateToken(t.Context(), sign(t, ci, issuer.Signing{},
		"_claim_names", map[string]string{"groups": "src"},
		"_claim_sources", map[string]any{"src": map[string]string{"endpoint": elsewhere.URL, "access_token": "x"}},
		"jku", elsewhere.URL))
	if !ok {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cellcast.io:pipelines", "system:authenticated"}, response.User.GetGroups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the URL that the token names was asked %d times", n)
	}
}

func TestPipelinesThroughAnOutage(t *testing.T) {
	ci := startIssuer(t, issuer.Options{CacheControl: "max-age=604800"})
	clock := testingclock.NewFakeClock(time.Now())
	p, _ := newPipelines(t, keyset.Options{Clock: clock}, trust{issuer: ci})
	check := func(what string, how issuer.Signing, want Reason) {
		t.Helper()
		token := sign(t, ci, how, "exp", in(time.Hour))
		_, _, err := p.AuthenticateToken(t.Context(), token)
		var got Reason
		var failure *Failure
		if errors.As(err, &failure) {
			got = failure.Reason
		}
		if got != want {
			t.Errorf("%s: got %q, want %q (%v)", what, got, want, err)
		}
	}
	ci.SetReachable(false)
	check("the issuer was never reached", issuer.Signing{}, ReasonKeysUnavailable)
	ci.SetReachable(true)
	clock.Step(10 * time.Second)
	check("it came up", issuer.Signing{}, "")
	ci.SetReachable(false)
	clock.Step(10 * time.Minute)
	check("it went away, the key is known", issuer.Signing{}, "")
	check("it's away, the key isn't known", issuer.Signing{KeyID: "unknown"}, ReasonKeysUnavailable)
	ci.SetReachable(true)
	if err := ci.Rotate(false); err != nil {
		t.Fatal(err)
	}
	clock.Step(10 * time.Second)
	check("it came back with new keys", issuer.Signing{}, "")
}

func TestIssuerBehindADiscoveryURL(t *testing.T) {
	const name = "https://ci.example.com"
	ci, other := startIssuer(t, issuer.Options{Name: name}), startIssuer(t, issuer.Options{})

	p, _ := newPipelines(t, keyset.Options{}, trust{issuer: ci, discovery: ci.DiscoveryURL()})
	response, ok, err := p.AuthenticateToken(t.Context(), sign(t, ci, issuer.Signing{}))
	if !ok {
		t.Fatal(err)
	}
	if got, want := response.User.GetName(), "pipeline:"+name+"#repo:octo-org/shop:environment:production"; got != want {
		t.Errorf("user %q, want %q", got, want)
	}

	// A document of another issuer vouches for nobody but that one.
	p, _ = newPipelines(t, keyset.Options{}, trust{issuer: other, url: name, discovery: other.DiscoveryURL()})
	token := sign(t, other, issuer.Signing{}, "iss", name)
	_, _, err = p.AuthenticateToken(t.Context(), token)
	wantFailure(t, err, ReasonKeysUnavailable, `KeysUnavailable: issuer "`+name+`": the issuer's keys can't be read: `+
		`the discovery document is of issuer "`+other.URL()+`", not of "`+name+`"`, token)
}

func BenchmarkPipeline(b *testing.B) {
	ci := startIssuer(b, issuer.Options{})
	p, _ := newPipelines(b, keyset.Options{}, trust{issuer: ci})
	for _, alg := range []string{issuer.RS256, issuer.ES256} {
		token := sign(b, ci, issuer.Signing{Alg: alg})
		b.Run(alg, func(b *testing.B) {
			for b.Loop() {
				if _, ok, err := p.AuthenticateToken(b.Context(), token); !ok {
					b.Fatal(err)
				}
			}
		})
	}
	unknown := sign(b, ci, issuer.Signing{}, "iss", "https://unknown.example.com")
	b.Run("unknown issuer", func(b *testing.B) {
		for b.Loop() {
			if _, ok, _ := p.AuthenticateToken(b.Context(), unknown); ok {
				b.Fatal("let in")
			}
		}
	})
}
