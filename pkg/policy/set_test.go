package policy

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"cellcast.io/cellcast/pkg/refusal"
)

// set compiles policies: a name and what a spec has beside rest.
func set(t testing.TB, specs map[string]string) *Set {
	t.Helper()
	c := compiler(t)
	var policies []*Policy
	for name, spec := range specs {
		policies = append(policies, compileObject(t, c, object(t, name, spec+rest)))
	}
	return NewSet(policies)
}

func names(policies []*Policy) []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.Name)
	}
	return names
}

func TestGovern(t *testing.T) {
	const (
		byIssuer      = "subjects: [{issuer: https://ci.example}]"
		byRepository  = "subjects: [{issuer: https://ci.example, claims: {repository: shop/api}}]"
		bySubject     = "subjects: [{issuer: https://ci.example, subject: 'repo:shop/api'}]"
		byExpression  = `subjects: [{expression: "claims.repository.startsWith('shop/')"}]`
		byUser        = "subjects: [{users: [ann]}]"
		byUserOrGroup = "subjects: [{groups: [dev]}, {users: [ann], groups: [dev]}]"
	)
	ann := Caller{User: "ann", Groups: []string{"dev"}}
	type answer struct {
		Policy      string
		Specificity int
		Tied        []string
	}
	for name, test := range map[string]struct {
		policies map[string]string
		caller   Caller
		want     answer
	}{
		"the only one": {map[string]string{"a": byIssuer}, pipeline("shop/api"), answer{"a", 1, nil}},
		"an exception beats the rule, whatever the names": {
			map[string]string{"a": byIssuer, "z": byRepository}, pipeline("shop/api"), answer{"z", 2, nil}},
		"who isn't the exception gets the rule": {
			map[string]string{"a": byIssuer, "z": byRepository}, pipeline("web/site"), answer{"a", 1, nil}},
		"a tie goes by name and is told": {
			map[string]string{"c": bySubject, "b": byRepository, "d": byRepository, "a": byIssuer}, pipeline("shop/api"), answer{"b", 2, []string{"c", "d"}}},
		"a policy for other workloads isn't a candidate": {
			map[string]string{"a": byIssuer, "z": byRepository + "\nworkloads: [batch, 'batch/*']"}, pipeline("shop/api"), answer{"a", 1, nil}},
		"a policy for the workload is": {
			map[string]string{"a": byIssuer, "z": byRepository + "\nworkloads: [payments/api]"}, pipeline("shop/api"), answer{"z", 2, nil}},
		"workloads don't count as a constraint": {
			map[string]string{"a": byIssuer, "z": byIssuer + "\nworkloads: ['payments/*']"}, pipeline("shop/api"), answer{"a", 1, []string{"z"}}},
		"an expression alone reaches pipelines": {
			map[string]string{"a": byExpression}, pipeline("shop/api"), answer{"a", 1, nil}},
		"and pipelines of issuers that other policies name": {
			map[string]string{"b": byExpression, "a": byIssuer}, pipeline("shop/api"), answer{"a", 1, []string{"b"}}},
		"an expression beside an issuer is one more": {
			map[string]string{"a": byIssuer, "b": `subjects: [{issuer: https://ci.example, expression: "claims.repository.startsWith('shop/')"}]`}, pipeline("shop/api"), answer{"b", 2, nil}},
		"an expression that fails doesn't match": {
			map[string]string{"a": byIssuer, "b": `subjects: [{issuer: https://ci.example, expression: "claims.environment != 'prod'"}]`}, pipeline("shop/api"), answer{"a", 1, nil}},
		"a hub user": {map[string]string{"a": byIssuer, "b": byUser}, ann, answer{"b", 1, nil}},
		"the best of a policy's subjects counts, and the policy once": {
			map[string]string{"a": byUser, "b": byUserOrGroup, "c": "subjects: [{groups: [dev]}, {groups: [dev], users: [ann]}, {users: [ann, bob], groups: [dev]}]"}, ann, answer{"b", 2, []string{"c"}}},
		"a policy for pipelines and people is for both": {
			map[string]string{"a": "subjects: [{users: [ann]}, {issuer: https://ci.example}]"}, ann, answer{"a", 1, nil}},
		"an expression alone reaches hub users": {
			map[string]string{"a": `subjects: [{expression: "'dev' in groups"}]`}, ann, answer{"a", 1, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			r, refused := set(t, test.policies).Govern(test.caller, "payments/api")
			if refused != nil {
				t.Fatal(refused)
			}
			if diff := cmp.Diff(test.want, answer{r.Policy.Name, r.Specificity, r.Tied}); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGovernRefusesWhomNoPolicyMatches(t *testing.T) {
	policies := map[string]string{
		"a": "subjects: [{issuer: https://ci.example, claims: {repository: shop/api}}]\nworkloads: ['batch/*']",
		"b": "subjects: [{users: [ann]}]\nworkloads: [web]",
	}
	secret := pipeline("shop/secret")
	secret.Claims["actor"] = []string{"nobody must read this"}
	for name, test := range map[string]struct {
		caller Caller
		want   string
	}{
		"a pipeline": {secret, `no PlacementPolicy matches subject "repo:shop/secret" of issuer "https://ci.example", which asks for workload "payments/api"; ` +
			`ask the platform team for a policy whose subjects match this identity`},
		"a pipeline of an unknown issuer": {Caller{Issuer: otherCI, Subject: "s"}, `no PlacementPolicy matches subject "s" of issuer "https://other.example", which asks for workload "payments/api"; ` +
			`ask the platform team for a policy whose subjects match this identity`},
		"a hub user": {Caller{User: "bob"}, `no PlacementPolicy matches user "bob", which asks for workload "payments/api"; ` +
			`ask the platform team for a policy whose subjects match this identity`},
		"a pipeline whose policies are for other workloads": {pipeline("shop/api"), `no PlacementPolicy for subject "repo:shop/api" of issuer "https://ci.example" permits workload "payments/api"; ` +
			`check the workload's name, or ask the platform team to add it to a policy`},
		"a user whose policies are for other workloads": {Caller{User: "ann"}, `no PlacementPolicy for user "ann" permits workload "payments/api"; ` +
			`check the workload's name, or ask the platform team to add it to a policy`},
	} {
		t.Run(name, func(t *testing.T) {
			r, refused := set(t, policies).Govern(test.caller, "payments/api")
			wantRefusal(t, refused, refusal.NoPolicy, "", test.want)
			if r.Policy != nil {
				t.Errorf("policy %s came with the refusal", r.Policy.Name)
			}
		})
	}
}

func TestReachable(t *testing.T) {
	s := set(t, map[string]string{
		"exception": "subjects: [{issuer: https://ci.example, claims: {repository: shop/api}}]\nworkloads: [web]",
		"a-rule":    "subjects: [{issuer: https://ci.example}]\nworkloads: ['batch/*']",
		"rule":      "subjects: [{users: [ann]}, {issuer: https://ci.example}]",
		"shadowed":  "subjects: [{issuer: https://ci.example}]\nworkloads: [x]",
		"people":    "subjects: [{users: [ann], groups: [dev]}, {groups: [dev]}, {users: [ann]}]\nworkloads: [x]",
	})
	for name, test := range map[string]struct {
		caller Caller
		want   []string
	}{
		"up to the first for every workload":      {pipeline("shop/api"), []string{"exception", "a-rule", "rule"}},
		"without those whose subject is another":  {pipeline("web/site"), []string{"a-rule", "rule"}},
		"a policy once, for its best subject":     {Caller{User: "ann", Groups: []string{"dev"}}, []string{"people", "rule"}},
		"none for a stranger":                     {Caller{User: "bob"}, nil},
		"none for a pipeline of another's issuer": {Caller{Issuer: otherCI, Subject: "repo:shop/api"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, names(s.Reachable(test.caller))); diff != "" {
				t.Errorf("reachable (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	got := set(t, map[string]string{
		"best":      "subjects: [{users: [ann]}, {issuer: https://ci.example, subject: 'repo:shop/api'}]",
		"equal":     "subjects: [{issuer: https://ci.example, claims: {repository: shop/api}}]",
		"lesser":    "subjects: [{issuer: https://ci.example, expression: 'claims.environment == string(1)'}, {issuer: https://ci.example}]",
		"elsewhere": "subjects: [{issuer: https://ci.example, subject: 'repo:shop/api', claims: {repository: shop/api}}]\nworkloads: [web]",
		"stranger":  "subjects: [{issuer: https://ci.example, claims: {repository: shop/web}}, {groups: [dev]}]",
	}).Explain(pipeline("shop/api"), "payments/api")
	want := []Verdict{
		{"best", Governs, 2, []string{"spec.subjects[1]: matches"}},
		{"equal", Tied, 2, []string{"spec.subjects[0]: matches"}},
		{"lesser", LessSpecific, 1, []string{`spec.subjects[0]: expression failed with "no such key: environment"`, "spec.subjects[1]: matches"}},
		{"elsewhere", OtherWorkloads, 3, []string{"spec.subjects[0]: matches", `spec.workloads: none is "payments/api"`}},
		{"stranger", NoSubject, 0, []string{`spec.subjects[0]: claim "repository" is missing or has another value`,
			"spec.subjects[1]: users, groups and serviceAccounts are for callers of the hub's own, and this is a pipeline"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func TestAmbiguous(t *testing.T) {
	const p = "subjects: [{issuer: https://ci.example, claims: {repository: shop/api, ref: main}}, {users: [ann, bob], groups: [dev]}, " +
		"{serviceAccounts: [{namespace: ns, name: a}]}, {issuer: https://ci.example, expression: 'user == string(1)'}]\nworkloads: [web, 'batch/*']"
	for name, test := range map[string]struct {
		other string
		tied  bool
	}{
		"the same claims":               {"subjects: [{issuer: https://ci.example, claims: {ref: main, repository: shop/api}}]", true},
		"another value of a claim":      {"subjects: [{issuer: https://ci.example, claims: {ref: other, repository: shop/api}}]", false},
		"a claim less":                  {"subjects: [{issuer: https://ci.example, claims: {repository: shop/api}}]", false},
		"another issuer":                {"subjects: [{issuer: https://other.example, claims: {ref: main, repository: shop/api}}]", false},
		"a subject more":                {"subjects: [{issuer: https://ci.example, subject: s, claims: {ref: main, repository: shop/api}}]", false},
		"a user and a group in common":  {"subjects: [{users: [bob, eve], groups: [ops, dev]}]", true},
		"a user in common, not a group": {"subjects: [{users: [bob], groups: [ops]}]", false},
		"a user in common, no groups":   {"subjects: [{users: [bob]}]", false},
		"the same ServiceAccount":       {"subjects: [{users: [eve]}, {serviceAccounts: [{namespace: other, name: a}, {namespace: ns, name: a}]}]", true},
		"the same expression":           {"subjects: [{issuer: https://ci.example, expression: 'user == string(1)'}]", true},
		"another expression":            {"subjects: [{issuer: https://ci.example, expression: 'user == string(2)'}]", false},
		"the same and one workload":     {"subjects: [{users: [ann], groups: [dev]}]\nworkloads: [other, web]", true},
		"the same and other workloads":  {"subjects: [{users: [ann], groups: [dev]}]\nworkloads: [other, 'web/*']", false},
		"the same and a wider prefix":   {"subjects: [{users: [ann], groups: [dev]}]\nworkloads: ['b*']", true},
		"the same and a narrow prefix":  {"subjects: [{users: [ann], groups: [dev]}]\nworkloads: ['batch/x/*']", true},
		"the same within a prefix":      {"subjects: [{users: [ann], groups: [dev]}]\nworkloads: [batch/x]", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t, map[string]string{"p": p, "other": test.other})
			var want [2][]string
			if test.tied {
				want = [2][]string{{"other"}, {"p"}}
			}
			byName := map[string]*Policy{}
			for _, p := range s.policies {
				byName[p.Name] = p
			}
			if diff := cmp.Diff(want, [2][]string{s.Ambiguous(byName["p"]), s.Ambiguous(byName["other"])}); diff != "" {
				t.Errorf("ambiguous, seen from p and from other (-want +got):\n%s", diff)
			}
		})
	}
}

// A set answers many requests at once; go test -race looks at this one.
func TestSetServesConcurrentCallers(t *testing.T) {
	s := set(t, map[string]string{
		"a": "subjects: [{issuer: https://ci.example}]",
		"b": `subjects: [{issuer: https://ci.example, expression: "claims.repository.matches('^shop/')"}]`,
	})
	answers := make(chan string)
	for range 8 {
		go func() {
			r, _ := s.Govern(pipeline("shop/api"), "api")
			s.Explain(pipeline("shop/api"), "api")
			answers <- r.Policy.Name
		}()
	}
	got := sets.New[string]()
	for range 8 {
		got.Insert(<-answers)
	}
	if !slices.Equal(sets.List(got), []string{"b"}) {
		t.Errorf("answers %v, want b alone", got)
	}
}
