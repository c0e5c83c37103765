package stanza_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/cli/stanza"
)

// nothing is null in a token; nil would leave the claim out.
var nothing = json.RawMessage("null")

func TestEveryPlatformHasAShape(t *testing.T) {
	if diff := cmp.Diff(stanza.Names(), slices.Sorted(maps.Keys(shapes))); diff != "" {
		t.Errorf("platforms and the shapes of their tokens (-platforms +shapes):\n%s", diff)
	}
}

// The claims of a token of the documented shape come to policies under their
// documented names, and a job without the optional ones gets in too.
func TestWhatPoliciesSeeOfAToken(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, name, s.issuer, nil)
			got := h.admit(s.full)
			if got.User != "pipeline:"+s.issuer+"#"+s.user || got.Issuer != s.issuer || got.Subject != s.full["sub"] {
				t.Errorf("user %q, issuer %q, subject %q", got.User, got.Issuer, got.Subject)
			}
			check := func(what string, got, want map[string][]string) {
				t.Helper()
				delete(got, "iss")
				delete(got, "sub")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the claims of %s token (-want +got):\n%s", what, diff)
				}
			}
			check("a full", got.Claims, s.wantFull)
			check("the least", h.admit(s.least).Claims, s.wantLeast)
		})
	}
}

// Whoever takes a name later doesn't take over what was permitted by id.
func TestANameThatIsTakenAgainInheritsNothingByID(t *testing.T) {
	for name, s := range shapes {
		if s.id == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			h := newHub(t, name, s.issuer, nil)
			first, second := h.admit(s.full), h.admit(become(s.full, map[string]registry.ClaimValue{s.id: registry.ClaimValue(s.reborn)}))
			byID := map[string]registry.ClaimValue{s.id: registry.ClaimValue(s.wantFull[s.id][0])}
			byName := map[string]registry.ClaimValue{s.name: registry.ClaimValue(s.wantFull[s.name][0])}
			both := map[string]registry.ClaimValue{}
			maps.Copy(both, byID)
			maps.Copy(both, byName)
			if !permits(t, first, s.issuer, byID) || !permits(t, first, s.issuer, both) || !permits(t, first, s.issuer, byName) {
				t.Errorf("the project itself isn't permitted by %s, or by %s", s.id, s.name)
			}
			if permits(t, second, s.issuer, byID) || permits(t, second, s.issuer, both) {
				t.Errorf("a project of the same %s inherits a policy that pins %s", s.name, s.id)
			}
			if !permits(t, second, s.issuer, byName) {
				t.Errorf("a policy by %s alone doesn't see another project: the test shows nothing", s.name)
			}
		})
	}
}

// A token without the ids, as an agent that wasn't asked for them has it,
// matches no policy that pins one.
func TestATokenWithoutIDsMatchesNoPolicyByID(t *testing.T) {
	s := shapes["buildkite"]
	c := newHub(t, "buildkite", s.issuer, nil).admit(s.least)
	for _, id := range []string{"pipeline_id", "organization_id"} {
		if permits(t, c, s.issuer, map[string]registry.ClaimValue{id: registry.ClaimValue(s.wantFull[id][0])}) {
			t.Errorf("it matches by %s", id)
		}
	}
}

// The rule that stands there as a comment works when it's taken in.
func TestTheRuleAgainstOtherOrganisations(t *testing.T) {
	for name, claim := range map[string]struct{ id, mine string }{
		"github":    {"repository_owner_id", "123456"},
		"gitlab":    {"namespace_id", "123456"},
		"buildkite": {"organization_id", "0184990a-477b-4fa8-9968-496074483cee"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shapes[name]
			h := newHub(t, name, s.issuer, func(content string) string {
				for _, line := range []string{"claimValidationRules:", "  - expression: ", "    message: "} {
					content = strings.Replace(content, "    #"+line, "    "+line, 1)
				}
				return content
			})
			h.admit(with(s.full, claim.id, claim.mine))
			for what, claims := range map[string]map[string]any{"another id": s.full, "no id": with(s.full, claim.id, nil)} {
				_, _, err := h.pipelines.AuthenticateToken(t.Context(), h.token(claims))
				var failure *caller.Failure
				if !errors.As(err, &failure) || failure.Reason != caller.ReasonClaims {
					t.Errorf("%s: got %v, want a failure of %s", what, err, caller.ReasonClaims)
				}
			}
		})
	}
}

// The examples of claims that stand there as a comment work when they're taken in.
func TestTheExampleClaimsOfTheGenericPlatform(t *testing.T) {
	s := shapes["generic"]
	h := newHub(t, "generic", s.issuer, func(content string) string {
		return strings.NewReplacer("      #extra:", "      extra:", "      #  ", "        ").Replace(content)
	})
	for what, test := range map[string]struct {
		claims map[string]any
		want   map[string][]string
	}{
		"all of them":   {with(s.full, "environment", "prod", "protected", true), map[string][]string{"project_id": {"12"}, "environment": {"prod"}, "protected": {"true"}}},
		"the least":     {s.full, map[string][]string{"project_id": {"12"}}},
		"null for some": {with(s.full, "environment", nothing, "protected", nothing), map[string][]string{"project_id": {"12"}}},
	} {
		got := h.admit(test.claims).Claims
		delete(got, "iss")
		delete(got, "sub")
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}
