package stanza_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/policy"
)

// documented are the policies of docs/ci.md, by the platform that their name
// begins with.
func documented(t *testing.T) map[string]*registry.PlacementPolicy {
	t.Helper()
	content, err := os.ReadFile("../../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]*registry.PlacementPolicy{}
	for _, part := range strings.Split(string(content), "```yaml\n")[1:] {
		block, _, closed := strings.Cut(part, "```")
		if !closed {
			t.Fatalf("a block isn't closed:\n%s", part)
		}
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(block), &object); err != nil {
			t.Errorf("%v:\n%s", err, block)
		}
		if object["kind"] != "PlacementPolicy" {
			continue
		}
		p := &registry.PlacementPolicy{}
		if err := yaml.UnmarshalStrict([]byte(block), p); err != nil {
			t.Fatalf("%v:\n%s", err, block)
		}
		platform, _, _ := strings.Cut(p.Name, "-")
		policies[platform] = p
	}
	return policies
}

// Each platform's policy in the docs is for a job of the documented shape once
// the claims that it names are the job's, and not when the id is another's.
func TestThePoliciesOfTheDocs(t *testing.T) {
	policies := documented(t)
	if got, want := slices.Sorted(maps.Keys(policies)), slices.Sorted(maps.Keys(shapes)); !slices.Equal(got, want) {
		t.Fatalf("docs/ci.md has policies for %q, want %q", got, want)
	}
	compiler, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range policies {
		t.Run(name, func(t *testing.T) {
			compiled, errs := compiler.Compile(p)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			set, s := policy.NewSet([]*policy.Policy{compiled}), shapes[name]
			subject := p.Spec.Subjects[0]
			h := newHub(t, name, subject.Issuer, nil)
			claims := s.full
			if subject.Subject != "" {
				claims = with(claims, "sub", subject.Subject)
			}
			mine := h.admit(become(claims, subject.Claims))
			if _, refused := set.Govern(mine, "shop/api"); refused != nil {
				t.Errorf("it isn't for the job that it names: %v\n%v", refused, mine.Claims)
			}
			if s.id == "" {
				return
			}
			if _, there := subject.Claims[s.id]; !there {
				t.Errorf("it doesn't pin %s", s.id)
			}
			other := maps.Clone(subject.Claims)
			other[s.id] = "another"
			if _, refused := set.Govern(h.admit(become(claims, other)), "shop/api"); refused == nil {
				t.Errorf("it's for a job whose %s is another", s.id)
			}
		})
	}
}
