package podidentity

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Both modes read the same claims. The refusals of a token by its own account
// cost the cell nothing.
func TestClaims(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix() // as synctest begins
	pod := func(members object) object {
		return object{"kubernetes.io": bound("team", "runner", object{"name": "work-1", "uid": "u1"}.with(members))}
	}
	tests := map[string]struct {
		change  object
		failure string // "" where the claims are good
	}{
		"good claims":                            {},
		"a clock that is 30 s ahead":             {change: object{"iat": now + 30, "nbf": now + 30}},
		"the last second":                        {change: object{"exp": now + 1}},
		"a life of exactly a day":                {change: object{"exp": now + 86400}},
		"an audience that is no list":            {change: object{"aud": "cellcast-ingest"}},
		"refuses another issuer":                 {object{"iss": "https://kubernetes.default.svc/"}, `Issuer: the issuer is "https://kubernetes.default.svc/", not "https://kubernetes.default.svc"`},
		"refuses an issuer in other case":        {object{"iss": nil, "ISS": "https://kubernetes.default.svc"}, `Issuer: the issuer is "", not "https://kubernetes.default.svc"`},
		"refuses another audience":               {object{"aud": []string{"https://kubernetes.default.svc"}}, `Audience: the audience is ["https://kubernetes.default.svc"], not "cellcast-ingest" alone`},
		"refuses a token that others can show":   {object{"aud": []string{"cellcast-ingest", "vault"}}, `Audience: the audience is ["cellcast-ingest" "vault"], not "cellcast-ingest" alone`},
		"refuses no audience":                    {object{"aud": nil}, `Audience: the audience is [], not "cellcast-ingest" alone`},
		"refuses no expiry":                      {object{"exp": nil}, `Expired: there is no expiry`},
		"refuses the second of the expiry":       {object{"exp": now}, `Expired: the token expired at 2000-01-01T00:00:00Z`},
		"refuses what begins in 31 s":            {object{"nbf": now + 31}, `NotYetValid: the token is not valid before 2000-01-01T00:00:31Z`},
		"refuses what was issued in 31 s":        {object{"iat": now + 31}, `NotYetValid: the token was issued in the future, at 2000-01-01T00:00:31Z`},
		"refuses a life of more than a day":      {object{"exp": now + 86401}, `Lifetime: the token lives for 24h0m1s, more than 24h0m0s`},
		"counts a life from now without an iat":  {object{"exp": now + 86401, "iat": nil}, `Lifetime: the token lives for 24h0m1s, more than 24h0m0s`},
		"counts a life from when it was issued":  {object{"exp": now + 60, "iat": now - 86341}, `Lifetime: the token lives for 24h0m1s, more than 24h0m0s`},
		"refuses an expiry that would wrap":      {object{"exp": 1e300}, `Malformed: the claims can't be read`},
		"refuses a negative date":                {object{"iat": -1}, `Malformed: the claims can't be read`},
		"refuses a date in quotes":               {object{"exp": "946688400"}, `Malformed: the claims can't be read`},
		"refuses another namespace":              {object{"kubernetes.io": bound("other", "runner", object{"name": "work-1", "uid": "u1"})}, `Namespace: the namespace is "other", not "team"`},
		"refuses another ServiceAccount":         {object{"kubernetes.io": bound("team", "admin", object{"name": "work-1", "uid": "u1"})}, `ServiceAccount: the ServiceAccount is "admin", not "runner"`},
		"refuses a subject of another namespace": {object{"sub": "system:serviceaccount:other:runner"}, `ServiceAccount: the subject is "system:serviceaccount:other:runner", not "system:serviceaccount:team:runner"`},
		"refuses no claims of Kubernetes":        {object{"kubernetes.io": nil}, `Namespace: the namespace is "", not "team"`},
		"refuses a token that names no pod":      {object{"kubernetes.io": bound("team", "runner", nil)}, `NoPod: the token isn't bound to a pod`},
		"refuses a pod without name":             {pod(object{"name": nil}), `NoPod: the token isn't bound to a pod`},
		"refuses a pod without UID":              {pod(object{"uid": ""}), `NoPod: the token isn't bound to a pod`},
		"refuses a pod whose name is a path":     {pod(object{"name": "../work-1"}), `NoPod: "../work-1" with UID "u1" is no pod`},
		"refuses a UID of 65 bytes":              {pod(object{"uid": strings.Repeat("u", 65)}), `NoPod: "work-1" with UID "` + strings.Repeat("u", 65) + `" is no pod`},
		"refuses a pod that is no object":        {object{"kubernetes.io": bound("team", "runner", "work-1")}, `Malformed: the claims can't be read`},
	}
	key := newKey(t, "k")
	for _, r := range []Registration{brought, fleet} {
		for name, tc := range tests {
			t.Run(string(r.Target.Mode)+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := &api{keys: []signingKey{key}}
					got, err := validator(t, r, a).Validate(t.Context(), key.token(t, podClaims().with(tc.change)))
					want, asked := at(r.Target), 1
					if tc.failure != "" {
						want, asked = Pod{}, 0
						tc.failure = "pod of " + r.Target.String() + ": " + tc.failure
					}
					if text(err) != tc.failure {
						t.Errorf("error\ngot  %s\nwant %s", text(err), tc.failure)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("pod (-want +got):\n%s", diff)
					}
					if reads, reviews := a.counts(); reads+reviews != asked {
						t.Errorf("%d reads of keys and %d reviews, want %d in all", reads, reviews, asked)
					}
				})
			})
		}
	}
}

func TestClaimsGivenTwiceAreRefused(t *testing.T) {
	key := newKey(t, "k")
	a := &api{keys: []signingKey{key}}
	for name, payload := range map[string]string{
		"at the top":  `{"iss":"https://kubernetes.default.svc","iss":"x"}`,
		"in the pod":  `{"kubernetes.io":{"pod":{"name":"work-1","uid":"u2","uid":"u1"}}}`,
		"in no claim": `["iss"]`,
	} {
		_, err := validator(t, brought, a).Validate(t.Context(), key.sign(t, payload))
		if got, want := text(err), "pod of target:t1: Malformed: the claims can't be read"; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// The pod of a token is whatever pod it is bound to; comparing is the caller's.
func TestPodOfTheSameNameKeepsItsOwnUID(t *testing.T) {
	key := newKey(t, "k")
	for _, r := range []Registration{brought, fleet} {
		v := validator(t, r, &api{keys: []signingKey{key}})
		for _, uid := range []string{"u1", "u2"} {
			claims := podClaims().with(object{"kubernetes.io": bound("team", "runner", object{"name": "work-1", "uid": uid})})
			got, err := v.Validate(t.Context(), key.token(t, claims))
			if err != nil || got.Name != "work-1" || string(got.UID) != uid || got.Target != r.Target {
				t.Errorf("%s: got %+v and %v, want UID %s", r.Target, got, err, uid)
			}
		}
	}
}
