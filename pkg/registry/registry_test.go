package registry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/policy"
)

func row(generation int64, expression string) *registryv1alpha1.PlacementPolicy {
	return &registryv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: generation},
		Spec: registryv1alpha1.PlacementPolicySpec{
			Subjects:        []registryv1alpha1.PolicySubject{{Issuer: "https://ci.example", Expression: expression}},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			Credential:      registryv1alpha1.CredentialScope{Namespace: "payments", ServiceAccountName: "deployer"},
		},
	}
}

func cell(name, env string) *registryv1alpha1.Cluster {
	return &registryv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}}}
}

func newRegistry(t *testing.T) *Registry {
	t.Helper()
	compiler, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return &Registry{compiler: compiler}
}

func TestAPolicyIsCompiledOncePerGeneration(t *testing.T) {
	r := newRegistry(t)
	first := r.entry(row(1, "true"), newView(nil, nil))
	view := newView(nil, []*Entry{first})
	if again := r.entry(row(1, "true"), view); again != first {
		t.Error("an unchanged policy was compiled again")
	}
	if changed := r.entry(row(2, "false"), view); changed == first || changed.Generation != 2 {
		t.Error("a changed policy was not")
	}
	recreated := row(1, "true")
	recreated.UID = "another"
	if got := r.entry(recreated, view); got == first {
		t.Error("a policy that was deleted and made anew is taken for the old one")
	}
}

func TestAPolicyThatDoesNotCompileDecidesNothingAndSaysWhy(t *testing.T) {
	r := newRegistry(t)
	view := newView(nil, []*Entry{r.entry(row(1, "claims.ref =="), newView(nil, nil))})
	entry, ok := view.Entry("p")
	if !ok || entry.Policy != nil || len(entry.Errors) == 0 {
		t.Fatalf("got %+v", entry)
	}
	if _, refused := view.Policies.Govern(policy.Caller{Issuer: "https://ci.example", Subject: "s"}, "w"); refused == nil {
		t.Error("it governs")
	}
}

func TestViewFindsCellsAndWhatWent(t *testing.T) {
	r := newRegistry(t)
	entry := r.entry(row(1, "true"), newView(nil, nil))
	before := newView([]*registryv1alpha1.Cluster{cell("a", "prod"), cell("b", "dev"), cell("c", "prod")}, []*Entry{entry})
	if got := before.Matched(entry.Policy); got != 2 {
		t.Errorf("the selector matches %d cells", got)
	}
	if _, ok := before.Cluster("nowhere"); ok {
		t.Error("a cell that isn't registered was found")
	}
	if before.Permission(entry.Policy) != entry.Permission {
		t.Error("the permission isn't the policy's")
	}
	after := newView([]*registryv1alpha1.Cluster{cell("b", "dev")}, nil)
	if diff := cmp.Diff([]string{"a", "c"}, before.gone(after)); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
}
