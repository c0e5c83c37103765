package policy

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// The generators write policies for a caller who is known, most of whose
// constraints it matches: drawn apart, hardly anything would match or tie.

func oneOf(values ...string) *rapid.Generator[string] { return rapid.SampledFrom(values) }

// mostly is the value, or now and then another.
func mostly(t *rapid.T, value, another string) string {
	return oneOf(value, value, value, another).Draw(t, "value")
}

func drawCaller(t *rapid.T) Caller {
	c := Caller{
		User:   oneOf("ann", "system:serviceaccount:ns:a").Draw(t, "user"),
		Groups: rapid.SliceOfNDistinct(oneOf("dev", "ops"), 0, 2, rapid.ID).Draw(t, "groups"),
		Claims: rapid.MapOfN(oneOf("k", "l", "sub"), rapid.SliceOfN(oneOf("x", "y"), 0, 2), 0, 3).Draw(t, "claims"),
	}
	if rapid.Bool().Draw(t, "is a pipeline") {
		c.Issuer, c.Subject = ci, "s"
	}
	return c
}

// constrain adds a constraint that fits the subject, or changes one.
func constrain(t *rapid.T, s *registry.PolicySubject, c Caller) {
	forPipelines := s.Issuer != "" || len(s.Users)+len(s.Groups)+len(s.ServiceAccounts) == 0 &&
		c.IsPipeline() == (mostly(t, "same class", "other class") == "same class")
	kinds := []string{"expression", "users", "groups", "serviceAccounts"}
	if forPipelines {
		kinds = []string{"expression", "issuer", "subject", "claim"}
	}
	kind := rapid.SampledFrom(kinds).Draw(t, "constraint")
	if s.Issuer == "" && (kind == "subject" || kind == "claim") {
		s.Issuer = mostly(t, ci, otherCI)
	}
	switch kind {
	case "expression":
		s.Expression = oneOf("user == 'ann'", "'dev' in groups", "claims.k == 'x'", "'y' in claimLists.l", "!has(claims.k)", "size(user) > 2").Draw(t, "expression")
	case "issuer":
		s.Issuer = mostly(t, ci, otherCI)
	case "subject":
		s.Subject = mostly(t, "s", "t")
	case "claim":
		if s.Claims == nil {
			s.Claims = map[string]registry.ClaimValue{}
		}
		name, value := oneOf("k", "l").Draw(t, "claim"), "x"
		if values := c.Claims[name]; len(values) > 0 {
			value = values[len(values)-1]
		}
		s.Claims[mostly(t, name, "sub")] = registry.ClaimValue(mostly(t, value, "s"))
	case "users":
		s.Users = []string{"bob", mostly(t, c.User, "eve")}
	case "groups":
		s.Groups = rapid.SliceOfNDistinct(oneOf("dev", "ops"), 1, 2, rapid.ID).Draw(t, "groups")
	case "serviceAccounts":
		s.ServiceAccounts = []registry.ServiceAccountReference{{Namespace: "ns", Name: mostly(t, "a", "b")}}
	}
}

func drawSubject(t *rapid.T, c Caller) registry.PolicySubject {
	var s registry.PolicySubject
	for range rapid.IntRange(1, 2).Draw(t, "constraints") {
		constrain(t, &s, c)
	}
	return s
}

// drawPolicy is a policy some of whose subjects c may match.
func drawPolicy(t *rapid.T, name string, c Caller) *registry.PlacementPolicy {
	o := &registry.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: registry.PlacementPolicySpec{
			Workloads:  rapid.SliceOfNDistinct(oneOf("web", "batch", "b*"), 0, 1, rapid.ID).Draw(t, "workloads"),
			Credential: registry.CredentialScope{Namespace: "n", ServiceAccountName: "s"},
		},
	}
	for range rapid.IntRange(1, 3).Draw(t, "subjects") {
		o.Spec.Subjects = append(o.Spec.Subjects, drawSubject(t, c))
	}
	return o
}

func mustCompile(t *rapid.T, c *Compiler, o *registry.PlacementPolicy) *Policy {
	p, errs := c.Compile(o)
	if len(errs) > 0 {
		t.Fatalf("%v: %v", o.Spec, errs)
	}
	return p
}

func TestAConstraintMoreNeverWidens(t *testing.T) {
	c := compiler(t)
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		caller := drawCaller(t)
		wide := drawPolicy(t, "p", caller)
		wide.Spec.Subjects = wide.Spec.Subjects[:1]
		narrow := wide.DeepCopy()
		before := *wide.Spec.Subjects[0].DeepCopy()
		constrain(t, &narrow.Spec.Subjects[0], caller)
		if !extends(before, narrow.Spec.Subjects[0]) {
			t.Skip("the constraint replaced another")
		}
		n, w := mustCompile(t, c, narrow).subjects[0], mustCompile(t, c, wide).subjects[0]
		if n.specificity <= w.specificity {
			t.Fatalf("specificity %d with a constraint more than %d", n.specificity, w.specificity)
		}
		if n.mismatch(&caller, &variables{}).none() {
			matched++
			if m := w.mismatch(&caller, &variables{}); !m.none() {
				t.Fatalf("%v matches %+v, and not without the last constraint: %v", caller, narrow.Spec.Subjects[0], m)
			}
		}
	})
	if matched == 0 {
		t.Error("no caller matched: the test shows nothing")
	}
}

// extends reports whether b has all constraints of a, unchanged.
func extends(a, b registry.PolicySubject) bool {
	for name, value := range a.Claims {
		if b.Claims[name] != value {
			return false
		}
	}
	grew := len(b.Claims) > len(a.Claims)
	for _, pair := range [][2]string{
		{a.Issuer, b.Issuer}, {a.Subject, b.Subject}, {a.Expression, b.Expression},
		{list(a.Users), list(b.Users)}, {list(a.Groups), list(b.Groups)}, {list(a.ServiceAccounts), list(b.ServiceAccounts)},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
		grew = grew || pair[0] != pair[1]
	}
	return grew
}

func list[T any](values []T) string {
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprint(values)
}

// Govern goes by an index and stops early; Explain looks at everything.
func TestGovernIsTheBestVerdictInAnyOrder(t *testing.T) {
	c := compiler(t)
	outcomes := map[Outcome]int{}
	rapid.Check(t, func(t *rapid.T) {
		caller, workload := drawCaller(t), oneOf("web", "batch", "other").Draw(t, "workload")
		var policies []*Policy
		for i := range rapid.IntRange(0, 6).Draw(t, "policies") {
			policies = append(policies, mustCompile(t, c, drawPolicy(t, fmt.Sprintf("p%d", i), caller)))
		}
		s, shuffled := NewSet(policies), NewSet(rapid.Permutation(policies).Draw(t, "order"))

		verdicts := s.Explain(caller, workload)
		var want, got Result
		for _, v := range verdicts {
			outcomes[v.Outcome]++
			switch v.Outcome {
			case Governs:
				want.Policy, want.Specificity = policies[v.Policy[1]-'0'], v.Specificity
			case Tied:
				want.Tied = append(want.Tied, v.Policy)
			}
		}
		if len(verdicts) != len(policies) {
			t.Fatalf("%d verdicts on %d policies", len(verdicts), len(policies))
		}
		for name, set := range map[string]*Set{"in order": s, "shuffled": shuffled} {
			var refused error
			if r, no := set.Govern(caller, workload); no != nil {
				got, refused = Result{}, no
			} else {
				got = r
			}
			if (refused == nil) != (want.Policy != nil) || got.Policy != want.Policy ||
				got.Specificity != want.Specificity || !slices.Equal(got.Tied, want.Tied) {
				t.Fatalf("%s: %+v (%v), want %+v of %+v", name, got, refused, want, verdicts)
			}
			if reachable := set.Reachable(caller); got.Policy != nil && !slices.Contains(reachable, got.Policy) {
				t.Fatalf("%s: %s governs and isn't reachable", name, got.Policy.Name)
			}
		}
		for _, tied := range want.Tied {
			if cmp.Compare(tied, want.Policy.Name) <= 0 {
				t.Fatalf("%s goes before %s", want.Policy.Name, tied)
			}
		}
		if diff := gocmp.Diff(verdicts, shuffled.Explain(caller, workload)); diff != "" {
			t.Fatalf("verdicts depend on the order:\n%s", diff)
		}
	})
	for _, o := range []Outcome{Governs, Tied, LessSpecific, OtherWorkloads, NoSubject} {
		if outcomes[o] == 0 {
			t.Errorf("no verdict was %s: the test shows too little", o)
		}
	}
}

func TestAmbiguousAgreesBothWays(t *testing.T) {
	c := compiler(t)
	rapid.Check(t, func(t *rapid.T) {
		caller := drawCaller(t)
		a, b := mustCompile(t, c, drawPolicy(t, "a", caller)), mustCompile(t, c, drawPolicy(t, "b", caller))
		s := NewSet([]*Policy{a, b})
		if (s.Ambiguous(a) == nil) != (s.Ambiguous(b) == nil) {
			t.Fatalf("a is ambiguous with %v, b with %v", s.Ambiguous(a), s.Ambiguous(b))
		}
		twin := *a
		twin.Name = "twin"
		if got := NewSet([]*Policy{a, &twin}).Ambiguous(a); !slices.Equal(got, []string{"twin"}) {
			t.Fatalf("a copy isn't ambiguous: %v", got)
		}
	})
}
