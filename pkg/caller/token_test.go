package caller

import (
	"context"
	"fmt"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/test/issuer"
)

func TestClaims(t *testing.T) {
	const now = 1_800_000_000
	want := expectation{issuer: "https://ci", audiences: []string{"hub", "hub2"}}
	tests := map[string]struct {
		claims  string
		subject string // expected; any where empty
		failure string // "" where the claims are good
	}{
		"good claims":                             {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800000600,"nbf":1800000000,"iat":1800000000}`},
		"one of several audiences":                {claims: `{"iss":"https://ci","sub":"a","aud":["x","hub2"],"exp":1800000600}`},
		"the expected subject":                    {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800000600}`, subject: "a"},
		"an issuer's clock that is 30 s ahead":    {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800000600,"nbf":1800000030,"iat":1800000030}`},
		"the last second":                         {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800000001}`},
		"a life of exactly a day":                 {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800086399,"iat":1799999999}`},
		"a date with a fraction":                  {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800000600.5}`},
		"refuses another issuer":                  {claims: `{"iss":"https://ci/","sub":"a","aud":"hub","exp":1800000600}`, failure: `Issuer: the issuer is "https://ci/", not "https://ci"`},
		"refuses an issuer in other case":         {claims: `{"ISS":"https://ci","sub":"a","aud":"hub","exp":1800000600}`, failure: `Issuer: the issuer is "", not "https://ci"`},
		"refuses a claim given twice":             {claims: `{"iss":"https://evil","iss":"https://ci","sub":"a","aud":"hub","exp":1800000600}`, failure: `Malformed: the registered claims can't be read`},
		"refuses no subject":                      {claims: `{"iss":"https://ci","aud":"hub","exp":1800000600}`, failure: `Subject: there is no subject`},
		"refuses another subject":                 {claims: `{"iss":"https://ci","sub":"A","aud":"hub","exp":1800000600}`, subject: "a", failure: `Subject: the subject is "A", not "a"`},
		"refuses another audience":                {claims: `{"iss":"https://ci","sub":"a","aud":"HUB","exp":1800000600}`, failure: `Audience: the audience is ["HUB"], not one of ["hub" "hub2"]`},
		"refuses no audience":                     {claims: `{"iss":"https://ci","sub":"a","exp":1800000600}`, failure: `Audience: the audience is [], not one of ["hub" "hub2"]`},
		"refuses no expiry":                       {claims: `{"iss":"https://ci","sub":"a","aud":"hub"}`, failure: `Expired: there is no expiry`},
		"refuses the second of the expiry":        {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800000000}`, failure: `Expired: the token expired at 2027-01-15T08:00:00Z`},
		"refuses what begins in 31 s":             {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800000600,"nbf":1800000031}`, failure: `NotYetValid: the token is not valid before 2027-01-15T08:00:31Z`},
		"refuses what was issued in 31 s":         {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800000600,"iat":1800000031}`, failure: `NotYetValid: the token was issued in the future, at 2027-01-15T08:00:31Z`},
		"refuses a life of more than a day":       {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800086401,"iat":1800000000}`, failure: `Lifetime: the token lives for 24h0m1s, more than 24h0m0s`},
		"counts the life from now without an iat": {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800086401}`, failure: `Lifetime: the token lives for 24h0m1s, more than 24h0m0s`},
		"refuses an expiry after the year 9999":   {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1e300}`, failure: `Malformed: the registered claims can't be read`},
		"refuses a beginning that would wrap":     {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800000600,"nbf":9223372036854775808}`, failure: `Malformed: the registered claims can't be read`},
		"refuses a negative date":                 {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":1800000600,"iat":-1}`, failure: `Malformed: the registered claims can't be read`},
		"refuses a date in quotes":                {claims: `{"iss":"https://ci","sub":"a","aud":"hub","exp":"1800000600"}`, failure: `Malformed: the registered claims can't be read`},
		"refuses a subject that is no string":     {claims: `{"iss":"https://ci","sub":{"a":1},"aud":"hub","exp":1800000600}`, failure: `Malformed: the registered claims can't be read`},
		"refuses claims that are no object":       {claims: `["iss"]`, failure: `Malformed: the registered claims can't be read`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := want
			e.subject = tc.subject
			c, failure := parseClaims([]byte(tc.claims))
			if failure == nil {
				failure = e.check(c, time.Unix(now, 0))
			}
			got := ""
			if failure != nil {
				got = fmt.Sprint(failure)
			}
			if got != tc.failure {
				t.Errorf("got  %s\nwant %s", got, tc.failure)
			}
		})
	}
}

// slowKeys takes a minute to read its keys and then finds every signature good.
type slowKeys struct{ clock *testingclock.FakeClock }

func (s slowKeys) VerifySignature(_ context.Context, token string) ([]byte, error) {
	s.clock.Step(time.Minute)
	return keyset.Unverified(token)
}

func TestTokenThatEndsWhileKeysAreRead(t *testing.T) {
	ci := startIssuer(t, issuer.Options{})
	e := expectation{issuer: ci.URL(), audiences: []string{audience}}
	for life, want := range map[time.Duration]Reason{59 * time.Second: ReasonExpired, 62 * time.Second: ""} {
		clock := testingclock.NewFakeClock(time.Now())
		_, failure := e.verify(t.Context(), slowKeys{clock}, sign(t, ci, issuer.Signing{}, "exp", in(life)), clock.Now)
		var got Reason
		if failure != nil {
			got = failure.Reason
		}
		if got != want {
			t.Errorf("a token of %s: got %q, want %q", life, got, want)
		}
	}
}
