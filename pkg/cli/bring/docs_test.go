package bring

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe/contract"
)

func page(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../../docs/targets.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestTheDocumentedRoleIsTheContract(t *testing.T) {
	_, block, _ := strings.Cut(page(t), "    apiVersion: rbac.authorization.k8s.io/v1\n")
	block, _, _ = strings.Cut("    apiVersion: rbac.authorization.k8s.io/v1\n"+block, "\n\n")
	var documented rbacv1.Role
	if err := yaml.UnmarshalStrict([]byte(block), &documented); err != nil {
		t.Fatal(err)
	}
	want := contract.Needed.Role(registryv1alpha1.ClusterTargetSpec{Namespace: "shop"}, contract.Account("shop", "cellcast-eu"))
	if diff := cmp.Diff(want.Rules, documented.Rules); diff != "" {
		t.Errorf("docs/targets.md has another Role (-contract +docs):\n%s", diff)
	}
}

func TestEveryItemAndStateIsDocumented(t *testing.T) {
	doc := page(t)
	for _, item := range registryv1alpha1.TargetChecks() {
		if !strings.Contains(doc, "\n| "+string(item)+" | ") {
			t.Errorf("docs/targets.md lacks the item %s", item)
		}
	}
	for _, state := range registryv1alpha1.TargetStates() {
		if !strings.Contains(doc, "\n| "+string(state)+" | ") {
			t.Errorf("docs/targets.md lacks the state %s", state)
		}
	}
}

// A target with every part: each Role that is made has its binding, in the
// target's namespace, for the account alone.
func TestEveryRoleIsBoundToTheAccountAlone(t *testing.T) {
	target := Target{Row: types.NamespacedName{Namespace: "payments", Name: "eu"}, Account: "cellcast-eu", Spec: registryv1alpha1.ClusterTargetSpec{
		Namespace: "shop", Queue: "gpu", ImagePullSecrets: []string{"registry"}, SandboxDriver: registryv1alpha1.SandboxKubernetes}}
	roles, bound := map[string]bool{}, map[string]bool{}
	for _, object := range append(target.Needed(), target.Optional()...) {
		switch o := object.(type) {
		case *rbacv1.Role:
			roles[o.Namespace+"/"+o.Name] = true
		case *rbacv1.RoleBinding:
			bound[o.Namespace+"/"+o.RoleRef.Name] = true
			if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "shop", Name: "cellcast-eu"}}, o.Subjects); diff != "" || o.RoleRef.Kind != "Role" {
				t.Errorf("%s is bound otherwise: %s", o.Name, diff)
			}
		}
	}
	want := map[string]bool{}
	for _, name := range target.RoleNames() {
		want["shop/"+name] = true
	}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Errorf("the Roles (-names +made):\n%s", diff)
	}
	if diff := cmp.Diff(roles, bound); diff != "" {
		t.Errorf("(-Roles +bound):\n%s", diff)
	}
}
