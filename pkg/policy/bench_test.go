package policy

import (
	"fmt"
	"testing"
)

// fleet is a set of 100 policies of one CI, each for a repository, with a rule
// for the rest of the CI and some for people.
func fleet(t testing.TB, expression string) *Set {
	specs := map[string]string{
		"rule":   "subjects: [{issuer: https://ci.example}]",
		"people": "subjects: [{groups: [dev]}, {users: [ann]}]",
	}
	for i := range 100 {
		specs[fmt.Sprintf("repository-%02d", i)] = fmt.Sprintf(
			"subjects: [{issuer: https://ci.example, claims: {repository: shop/%d, environment: prod}%s}]\nworkloads: ['payments/*']\n", i, expression)
	}
	return set(t, specs)
}

func deploy(repository string) Caller {
	c := pipeline(repository)
	c.Claims["environment"] = []string{"prod"}
	c.Claims["ref"] = []string{"refs/tags/v1.2.3"}
	return c
}

func TestGovernAllocatesNothingWithoutExpressions(t *testing.T) {
	s, caller := fleet(t, ""), deploy("shop/73")
	if n := testing.AllocsPerRun(100, func() {
		if r, _ := s.Govern(caller, "payments/api"); r.Policy == nil || r.Policy.Name != "repository-73" {
			t.Fatalf("governed by %+v", r)
		}
	}); n > 0 {
		t.Errorf("%v allocations per decision", n)
	}
}

func BenchmarkGovern(b *testing.B) {
	for name, bench := range map[string]struct {
		expression string
		caller     Caller
	}{
		"exception":     {"", deploy("shop/73")},
		"rule":          {"", deploy("web/site")},
		"expression":    {`, expression: "claims.ref.startsWith('refs/tags/v')"`, deploy("shop/73")},
		"unknownIssuer": {"", Caller{Issuer: otherCI, Subject: "s"}},
		"hubUser":       {"", Caller{User: "ann", Groups: []string{"system:authenticated", "ops"}}},
	} {
		b.Run(name, func(b *testing.B) {
			s := fleet(b, bench.expression)
			b.ReportAllocs()
			for b.Loop() {
				s.Govern(bench.caller, "payments/api")
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	c := compiler(b)
	o := object(b, "p", `subjects: [{issuer: https://ci.example, expression: "claims.ref.matches('^refs/tags/v[0-9]+$')"}]`+rest)
	b.ReportAllocs()
	for b.Loop() {
		if _, errs := c.Compile(o); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
