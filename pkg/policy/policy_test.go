package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

const (
	ci      = "https://ci.example"
	otherCI = "https://other.example"
)

// rest is the part of a spec that the test of another part doesn't look at.
const rest = `
clusterSelector: {matchLabels: {tier: apps}}
credential: {namespace: deploy, serviceAccountName: deployer}
`

func compiler(t testing.TB) *Compiler {
	t.Helper()
	c, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// object is a PlacementPolicy of this spec, in YAML.
func object(t testing.TB, name, spec string) *registry.PlacementPolicy {
	t.Helper()
	p := &registry.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

func compile(t testing.TB, name, spec string) *Policy {
	t.Helper()
	return compileObject(t, compiler(t), object(t, name, spec))
}

func compileObject(t testing.TB, c *Compiler, o *registry.PlacementPolicy) *Policy {
	t.Helper()
	p, errs := c.Compile(o)
	if err := errs.ToAggregate(); err != nil {
		t.Fatalf("%s: %v", o.Name, err)
	}
	return p
}

// pipeline is a pipeline of ci that builds one repository.
func pipeline(repository string) Caller {
	return Caller{
		User:    "pipeline:" + ci + "#x",
		Groups:  []string{"cellcast.io:pipelines"},
		Issuer:  ci,
		Subject: "repo:" + repository,
		Claims:  map[string][]string{"repository": {repository}},
	}
}

// wantRefusal fails unless r says exactly this.
func wantRefusal(t *testing.T, r *refusal.Refusal, code refusal.Code, field, message string) {
	t.Helper()
	if r == nil {
		t.Fatalf("no refusal, want %s: %s", code, message)
	}
	type said struct {
		Code           refusal.Code
		Field, Message string
	}
	if diff := cmp.Diff(said{code, field, message}, said{r.Code, r.Field, r.Message}); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
}

// said is each error as a line.
func said(errs field.ErrorList) []string {
	var lines []string
	for _, err := range errs {
		lines = append(lines, err.Error())
	}
	return lines
}

func TestScopeOfAFixedNamespace(t *testing.T) {
	p := compile(t, "p", `
subjects: [{issuer: https://ci.example}]
clusterSelector: {}
credential: {namespace: deploy, serviceAccountName: deployer, audiences: [a, b]}
`)
	got, r := p.Scope(pipeline("shop/api"), "api")
	if r != nil {
		t.Fatal(r)
	}
	want := Scope{Namespace: "deploy", ServiceAccountName: "deployer", Audiences: []string{"a", "b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scope (-want +got):\n%s", diff)
	}
	got.Audiences[0] = "changed"
	if again, _ := p.Scope(pipeline("shop/api"), "api"); again.Audiences[0] != "a" {
		t.Error("a caller of Scope changed the policy")
	}
}

func TestScopeOfAComputedNamespace(t *testing.T) {
	const prefix = `policy "p" governs subject "repo:shop/api" of issuer "https://ci.example" and `
	const fails = prefix + `can't compute a namespace for it: namespaceExpression fails on workload "payments/api"; ask the platform team to correct the policy`
	const invalid = prefix + `computes no valid namespace for it: what namespaceExpression yields on workload "payments/api" ` +
		`is not a DNS label (at most 63 lower-case letters, digits and '-', with a letter or digit at both ends); ask the platform team to correct the policy`
	for name, test := range map[string]struct {
		expression       string
		want             string // the namespace
		refusal, because string
	}{
		"reads a claim":                {expression: `'repo-' + claims.repository.replace('/', '-')`, want: "repo-shop-api"},
		"reads the workload":           {expression: `workload.split('/')[0]`, want: "payments"},
		"reads the subject":            {expression: `claims.sub.split(':')[0]`, want: "repo"},
		"a claim is missing":           {expression: `claims.team`, refusal: fails, because: "no such key: team"},
		"an index is out of range":     {expression: `workload.split('/')[2]`, refusal: fails, because: "index out of bounds: 2"},
		"yields nothing":               {expression: `workload.substring(0, 0)`, refusal: invalid, because: `namespaceExpression yields ""`},
		"yields a path":                {expression: `'../' + workload`, refusal: invalid, because: `namespaceExpression yields "../payments/api"`},
		"yields capitals":              {expression: `workload.split('/')[0].upperAscii()`, refusal: invalid, because: `namespaceExpression yields "PAYMENTS"`},
		"yields more than 63 letters":  {expression: `'x123456789x123456789x123456789x123456789x123456789x123456789x123'`, refusal: invalid, because: `namespaceExpression yields "x123456789x123456789x123456789x123456789x123456789x123456789x123"`},
		"yields exactly 63 letters":    {expression: `'x123456789x123456789x123456789x123456789x123456789x123456789x12'`, want: "x123456789x123456789x123456789x123456789x123456789x123456789x12"},
		"starts with a claim's hyphen": {expression: `'-' + workload.split('/')[1]`, refusal: invalid, because: `namespaceExpression yields "-api"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, "p", `
subjects: [{issuer: https://ci.example}]
clusterSelector: {}
credential: {serviceAccountName: deployer}
`)
			o.Spec.Credential.NamespaceExpression = test.expression
			got, r := compileObject(t, compiler(t), o).Scope(pipeline("shop/api"), "payments/api")
			if test.refusal == "" {
				if r != nil || got.Namespace != test.want {
					t.Errorf("namespace %q, refusal %v; want %q", got.Namespace, r, test.want)
				}
				return
			}
			wantRefusal(t, r, refusal.NoPolicy, "", test.refusal)
			if diff := cmp.Diff(Scope{}, got); diff != "" {
				t.Errorf("a refused scope (-want +got):\n%s", diff)
			}
			if r.Unwrap() == nil || r.Unwrap().Error() != test.because {
				t.Errorf("cause %v, want %q", r.Unwrap(), test.because)
			}
		})
	}
}

func TestCompileReadsTheSettings(t *testing.T) {
	p := compile(t, "p", `
subjects: [{issuer: https://ci.example}, {users: [ann]}, {issuer: https://ci.example, subject: s}, {issuer: https://a.example, subject: s}]
clusterSelector: {matchLabels: {tier: apps}, matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}
strategy: Sticky
allowDark: true
allowCellSelection: true
tokenTTL: {default: 20m, max: 2h}
credential: {namespace: deploy, serviceAccountName: deployer}
`)
	type settings struct {
		Name                          string
		Strategy                      registry.Strategy
		AllowDark, AllowCellSelection bool
		TokenTTL                      TTL
	}
	want := settings{"p", registry.StrategySticky, true, true, TTL{Default: 20 * 60e9, Max: 2 * 3600e9}}
	if diff := cmp.Diff(want, settings{p.Name, p.Strategy, p.AllowDark, p.AllowCellSelection, p.TokenTTL}); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"https://a.example", ci}, p.Issuers()); diff != "" {
		t.Errorf("issuers (-want +got):\n%s", diff)
	}
	for cell, permitted := range map[*labels.Set]bool{
		{"tier": "apps", "env": "dev"}:  true,
		{"tier": "apps", "env": "prod"}: false,
		{"env": "dev"}:                  false,
	} {
		if got := p.Selector.Matches(cell); got != permitted {
			t.Errorf("selector permits %v: %v, want %v", cell, got, permitted)
		}
	}
}

func TestCompileFillsTheDefaults(t *testing.T) {
	p := compile(t, "p", "subjects: [{users: [ann]}]\n"+rest)
	if p.Strategy != registry.StrategyLeastLoaded || p.AllowDark || p.AllowCellSelection || p.TokenTTL != (TTL{}) || p.Issuers() != nil {
		t.Errorf("defaults: %+v", p)
	}
	all := compile(t, "p", "subjects: [{users: [ann]}]\nclusterSelector: {}\ncredential: {namespace: ns, serviceAccountName: s}")
	if !all.Selector.Matches(labels.Set{}) {
		t.Error("an empty selector doesn't permit a cell without labels")
	}
}
