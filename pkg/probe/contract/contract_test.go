package contract

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

func everything() registryv1alpha1.ClusterTargetSpec {
	return registryv1alpha1.ClusterTargetSpec{
		Namespace: "team", ServiceAccountName: "turns", ImagePullSecrets: []string{"pull", "mirror"},
		Queue: "measure", SandboxDriver: registryv1alpha1.SandboxKubernetes,
	}
}

func TestContract(t *testing.T) {
	var got []string
	for _, r := range Contract() {
		got = append(got, strings.Join(r.Verbs, ",")+" "+r.On())
	}
	want := []string{"get namespaces", "create,get,list,watch,delete pods", "get pods/log", "create,get,list,watch,delete configmaps"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the contract (-want +got):\n%s", diff)
	}
	for _, part := range Parts() {
		for _, r := range part.Rights(everything()) {
			if r.Why == "" || strings.Contains(strings.Join(r.Verbs, ""), "*") || strings.Contains(r.Resource+r.Group, "*") {
				t.Errorf("%s: %s has the verbs %v, because %q", part, r.On(), r.Verbs, r.Why)
			}
		}
	}
}

func TestPartsThatATargetDoesNotUse(t *testing.T) {
	spec := registryv1alpha1.ClusterTargetSpec{Namespace: "team"}
	for _, part := range []Part{PullSecrets, LocalQueue, Sandboxes, "else"} {
		if rights, role := part.Rights(spec), part.Role(spec, Account("team", "cellcast-lab")); rights != nil || role != nil {
			t.Errorf("%s: %v", part, rights)
		}
	}
	if rights := Tokens.Rights(spec); len(rights) != 1 || rights[0].Names[0] != "default" {
		t.Errorf("tokens: %v", rights)
	}
}

func TestRoles(t *testing.T) {
	var got bytes.Buffer
	write := func(object any) {
		document, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(document)
	}
	subject := Account("team", "cellcast-lab")
	for _, part := range Parts() {
		write(part.Role(everything(), subject))
		write(part.Binding(everything(), subject))
	}
	write(IssuerDiscovery(subject))
	const golden = "testdata/roles.yaml"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

// Two hubs may use one namespace: what is applied for one must not replace what
// the other has.
func TestRolesOfSubjectsDiffer(t *testing.T) {
	subjects := []rbacv1.Subject{
		Account("team", "cellcast-lab"), Account("team", "tokens"), Account("team", "User"), Account("other", "cellcast-lab"), Account("other", "tokens"),
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ann"}, {APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ben"},
	}
	owners := map[string]string{}
	for _, subject := range subjects {
		for _, part := range Parts() {
			role, binding := part.Role(everything(), subject), part.Binding(everything(), subject)
			if role.Name != binding.Name || role.Name != binding.RoleRef.Name || strings.ContainsAny(role.Name, "/%") {
				t.Errorf("the Role %s, bound by %s to %s", role.Name, binding.Name, binding.RoleRef.Name)
			}
			owner := string(part) + " of " + subject.Kind + " " + subject.Namespace + ":" + subject.Name
			if other, taken := owners[role.Name]; taken {
				t.Errorf("%s and %s have one name, %s", owner, other, role.Name)
			}
			owners[role.Name] = owner
		}
	}
}

func TestSubjectOf(t *testing.T) {
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: name}
	}
	tests := map[string]struct {
		username string
		want     rbacv1.Subject
		ok       bool
	}{
		"a ServiceAccount":                {"system:serviceaccount:team:hub", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "team", Name: "hub"}, true},
		"a user":                          {"ann@example.com", user("ann@example.com"), true},
		"nobody":                          {"", rbacv1.Subject{}, false},
		"anybody":                         {"system:anonymous", rbacv1.Subject{}, false},
		"a ServiceAccount without a name": {"system:serviceaccount:team:", Account("team", ""), false},
		"a ServiceAccount of nowhere":     {"system:serviceaccount:hub", Account("hub", ""), false},
		"a name with a line break":        {"a\nEOF", rbacv1.Subject{}, false},
		"a name that is no text":          {"a\xff", rbacv1.Subject{}, false},
		"a name that is too long":         {strings.Repeat("a", 513), rbacv1.Subject{}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := SubjectOf(tc.username)
			if ok != tc.ok || ok && got != tc.want {
				t.Errorf("got %+v, %t", got, ok)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	pull := Right{Resource: "secrets", Names: []string{"pull"}, Verbs: []string{"get"}}
	pods := Right{Resource: "pods", Verbs: []string{"get", "list"}}
	tests := map[string]struct {
		right                 Right
		verb, group, resource string
		names                 []string
		want                  bool
	}{
		"a verb of it":                   {pods, "list", "", "pods", nil, true},
		"a verb of it on one object":     {pods, "get", "", "pods", []string{"web"}, true},
		"another verb":                   {pods, "patch", "", "pods", nil, false},
		"all verbs":                      {pods, "*", "", "pods", nil, false},
		"another group":                  {pods, "get", "metrics.k8s.io", "pods", nil, false},
		"another resource":               {pods, "get", "", "pods/log", nil, false},
		"the object that it names":       {pull, "get", "", "secrets", []string{"pull"}, true},
		"another object":                 {pull, "get", "", "secrets", []string{"pull", "db"}, false},
		"any object, where it names one": {pull, "get", "", "secrets", nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.right.Covers(tc.verb, tc.group, tc.resource, tc.names); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
