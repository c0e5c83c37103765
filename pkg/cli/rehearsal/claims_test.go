package rehearsal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/policy"
)

func TestClaimsBecomeThePipelineThatTheHubSees(t *testing.T) {
	got, skipped, err := ParseClaims([]byte(`{
		"iss": "https://ci.example.com", "sub": "repo:acme/payments", "aud": ["a", "b"],
		"repository_id": "42", "run_number": 9007199254740993, "protected": true, "environment": "", "actor": null,
		"groups": ["x", "", 7], "none": [], "kubernetes.io": {"namespace": "ci", "serviceaccount": {"uid": "u-1"}},
		"nested": ["a", ["b"]], "in": {"side": [{}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Caller{
		User: "pipeline:https://ci.example.com#repo:acme/payments", Groups: []string{"cellcast.io:pipelines", "system:authenticated"},
		Issuer: "https://ci.example.com", Subject: "repo:acme/payments",
		Claims: map[string][]string{
			"iss": {"https://ci.example.com"}, "sub": {"repo:acme/payments"}, "aud": {"a", "b"},
			"repository_id": {"42"}, "run_number": {"9007199254740993"}, "protected": {"true"}, "groups": {"x", "7"},
			"kubernetes.io/namespace": {"ci"}, "kubernetes.io/serviceaccount/uid": {"u-1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("caller (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"in/side", "nested"}, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

// The client doesn't link the hub's package of callers; this holds the two
// together.
func TestAPipelineHasTheNameAndGroupsThatTheHubGivesIt(t *testing.T) {
	got, _, err := ParseClaims([]byte(`{"iss": "https://ci.example.com", "sub": "system:serviceaccount:ci:deployer"}`))
	if err != nil {
		t.Fatal(err)
	}
	hub := caller.From(&caller.Pipeline{Issuer: "https://ci.example.com", Subject: "system:serviceaccount:ci:deployer", Name: "serviceaccount:ci:deployer"})
	if diff := cmp.Diff(hub.Caller, got); diff != "" {
		t.Errorf("caller (-hub +client):\n%s", diff)
	}
}

func TestClaimsThatAreRefused(t *testing.T) {
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhIn0.c2lnbmF0dXJl"
	for sentence, tt := range map[string]struct{ content, want string }{
		"a token":                        {jwt + "\n", "holds a token, where its payload is wanted"},
		"a token in quotes":              {`"` + jwt + `"`, "holds a token"},
		"the answer of a token endpoint": {`{"count": 1, "value": "` + jwt + `"}`, "holds a token"},
		"nothing":                        {"", "holds no JSON object"},
		"null":                           {"null", "holds no JSON object"},
		"a list":                         {`["SECRET"]`, "holds no JSON object"},
		"a header before the payload":    {`{"alg": "RS256"} {"iss": "a", "sub": "b"}`, "holds more than one JSON object"},
		"no issuer":                      {`{"sub": "SECRET"}`, "has no iss"},
		"an issuer that is no text":      {`{"iss": ["SECRET"], "sub": "b"}`, "has no iss"},
		"no subject":                     {`{"iss": "SECRET"}`, "has no sub"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, _, err := ParseClaims([]byte(tt.content))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("got %v, want %s…", err, tt.want)
			}
			if strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "eyJ") {
				t.Errorf("the error repeats what is in the file: %v", err)
			}
			if diff := cmp.Diff(policy.Caller{}, got); diff != "" {
				t.Errorf("a caller comes with the error: %s", diff)
			}
		})
	}
}

func TestHubUsersHaveTheGroupsThatAnAPIServerAdds(t *testing.T) {
	for name, want := range map[string][]string{
		"ana":                              {"developers", "system:authenticated"},
		"system:serviceaccount:ci:deploy":  {"developers", "system:authenticated", "system:serviceaccounts", "system:serviceaccounts:ci"},
		"system:serviceaccounts:not:a:one": {"developers", "system:authenticated"},
	} {
		if diff := cmp.Diff(policy.Caller{User: name, Groups: want}, HubUser(name, []string{"developers"})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
