package policy

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzExpression compiles and evaluates what an operator might write. Whatever
// it is, it must neither panic nor cost more than was estimated when it was let
// in, and no text may get longer than the estimate reckons with. The corpus is in testdata.
func FuzzExpression(f *testing.F) {
	c := compiler(f)
	f.Fuzz(func(t *testing.T, text, value string) {
		if len(value) > maxValueLength {
			t.Skip("no expression sees this caller")
		}
		caller := Caller{User: value, Groups: []string{value, "a"}, Issuer: ci, Subject: value,
			Claims: map[string][]string{"ref": {value}, "repository": {"a/b"}, "list": {value, value}}}
		for _, want := range []*cel.Type{cel.BoolType, cel.StringType} {
			compiled, err := compileExpression(c.scope, text, want)
			if err != nil {
				if strings.Contains(err.Error(), "\n") || !utf8.ValidString(err.Error()) && utf8.ValidString(text) {
					t.Errorf("an error of several lines: %q", err)
				}
				continue
			}
			out, err := compiled.evaluate(&variables{workload: "api"}, &caller)
			if err != nil && strings.HasPrefix(err.Error(), "internal error") {
				t.Errorf("a panic: %v", err)
			}
			if estimate, cost := costs(t, c.scope, text, caller); cost > estimate || estimate > maxCost {
				t.Errorf("cost %d, more than the estimated %d", cost, estimate)
			}
			ast, _ := c.scope.Compile(text)
			e, err := inspect(ast.NativeRep())
			if err != nil {
				t.Fatal(err)
			}
			if s, ok := out.(string); ok && uint64(utf8.RuneCountInString(s)) > e.longest() {
				t.Errorf("yields %d characters, expected at most %d", utf8.RuneCountInString(s), e.longest())
			}
		}
	})
}

// FuzzClaims asks for callers of every kind. Only equality matches, whatever
// the text; a computed namespace is a DNS label or a refusal; and a refusal
// never holds a claim.
func FuzzClaims(f *testing.F) {
	s := set(f, map[string]string{
		"claim": "subjects: [{issuer: https://ci.example, claims: {repository: shop/api}}]",
		"user":  "subjects: [{users: [ann]}, {serviceAccounts: [{namespace: ns, name: a}]}]",
	})
	scoped := compile(f, "scoped", `
subjects: [{expression: 'true'}]
clusterSelector: {}
credential: {namespaceExpression: "'ns-' + claims.team", serviceAccountName: s}
`)
	f.Fuzz(func(t *testing.T, issuer, subject, name, value, user string) {
		caller := Caller{User: user, Issuer: issuer, Subject: subject, Claims: map[string][]string{name: {value}}}
		want := ""
		switch {
		case issuer == ci && name == "repository" && value == "shop/api":
			want = "claim"
		case issuer == "" && (user == "ann" || user == "system:serviceaccount:ns:a"):
			want = "user"
		}
		r, refused := s.Govern(caller, "api")
		switch {
		case refused == nil && (want == "" || r.Policy.Name != want):
			t.Errorf("%+v: policy %s, want %q", caller, r.Policy.Name, want)
		case refused != nil && want != "":
			t.Errorf("%+v: %v, want %s", caller, refused, want)
		}
		scope, unscoped := scoped.Scope(caller, "api")
		if unscoped == nil && (len(validation.IsDNS1123Label(scope.Namespace)) > 0 || scope.Namespace != "ns-"+value) {
			t.Errorf("namespace %q of claim %q", scope.Namespace, value)
		}
		const marker = "this claim is nobody's business"
		caller.Claims[name] = []string{marker}
		if _, refused := s.Govern(caller, "api"); refused != nil && strings.Contains(refused.Message, marker) {
			t.Errorf("a claim in %q", refused.Message)
		}
		if _, refused := scoped.Scope(caller, "api"); refused != nil && strings.Contains(refused.Message, marker) {
			t.Errorf("a claim in %q", refused.Message)
		}
	})
}
