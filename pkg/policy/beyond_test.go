package policy

import (
	"strings"
	"testing"

	"cellcast.io/cellcast/pkg/refusal"
)

// A caller who makes a claim too long for expressions must not so get from the
// narrow policy, which it would match, to the wide one.
func TestACallerBeyondTheBoundsIsNotPassedOnToAWiderPolicy(t *testing.T) {
	const rest = "\nclusterSelector: {}\ncredential: {namespace: payments, serviceAccountName: deployer}\n"
	set := NewSet([]*Policy{
		compile(t, "narrow", "subjects: [{issuer: https://ci.example, expression: \"claims.ref != 'refs/heads/main'\"}]"+rest),
		compile(t, "wide", "subjects: [{issuer: https://ci.example}]"+rest),
	})
	caller := Caller{Issuer: "https://ci.example", Subject: "s", Claims: map[string][]string{"ref": {"refs/heads/x"}}}
	if got, refused := set.Govern(caller, "payments/api"); refused != nil || got.Policy.Name != "narrow" {
		t.Fatalf("got %+v, %v; want the narrow policy", got, refused)
	}
	caller.Claims["ref"] = []string{strings.Repeat("x", 5000)}
	_, refused := set.Govern(caller, "payments/api")
	if refused == nil || refused.Code != refusal.NoPolicy || !strings.Contains(refused.Message, `policy "narrow" can't be decided`) {
		t.Errorf("got %v", refused)
	}
}
