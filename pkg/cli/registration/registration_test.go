package registration_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/registration"
)

var update = flag.Bool("update", false, "write the golden files anew")

// full is a cell with every fact given.
func full(t *testing.T) registration.Cell {
	t.Helper()
	return registration.Cell{
		Name:          "eu-1",
		Endpoint:      "https://eu-1.example.com:6443",
		CABundle:      read(t, "ca.pem"),
		Provider:      registryv1alpha1.ProviderGeneric,
		State:         registryv1alpha1.StateDark,
		Labels:        map[string]string{"env": "prod", "region": "eu"},
		Issuer:        "https://kubernetes.default.svc.cluster.local",
		APIAudiences:  []string{"https://kubernetes.default.svc", "https://kubernetes.default.svc.cluster.local"},
		Mint:          []types.NamespacedName{{Namespace: "web", Name: "deployer"}, {Namespace: "payments", Name: "deployer"}, {Namespace: "payments", Name: "admin"}, {Namespace: "web", Name: "deployer"}, {Namespace: "payments-ci", Name: "deployer"}},
		Revocable:     []string{"web-ci", "payments-ci", "web-ci"},
		MintAudiences: []string{"vault"},
		MaxTTL:        30 * time.Minute,
		Hub: registration.Hub{
			Issuer:    "https://hub.example.com",
			MirrorURL: "https://cellcast.example.com:8443/",
			MirrorCA:  read(t, "ca.pem"),
		},
	}
}

// least is a cell with nothing but what has no default.
func least() registration.Cell {
	return registration.Cell{
		Name:     "eu-1",
		Endpoint: "https://eu-1.example.com",
		Issuer:   "https://eu-1.example.com",
		Mint:     []types.NamespacedName{{Namespace: "payments", Name: "deployer"}},
		Hub:      registration.Hub{Issuer: "https://hub.example.com"},
	}
}

func TestManifestsAreThoseOfTheGoldenFiles(t *testing.T) {
	for name, cell := range map[string]registration.Cell{"full": full(t), "least": least()} {
		t.Run(name, func(t *testing.T) {
			r, err := registration.New(cell)
			if err != nil {
				t.Fatal(err)
			}
			row, err := registration.YAML(r.Cluster())
			if err != nil {
				t.Fatal(err)
			}
			onCell, err := registration.YAML(r.OnCell()...)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+"-hub.yaml", row)
			golden(t, name+"-cell.yaml", onCell)
			golden(t, name+"-authentication.yaml", marshal(t, r.Authentication()))
			golden(t, name+"-audit.yaml", marshal(t, r.Audit()))
		})
	}
}

func TestBoundsComeBeforeTheAccessThatTheyBound(t *testing.T) {
	cell := least()
	cell.Revocable = []string{"payments-ci"}
	r, err := registration.New(cell)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, object := range r.OnCell() {
		kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
	}
	want := []string{
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", // of tokens
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", // of the hub's Secrets
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", // of everyone's
		"ResourceQuota", // of their number
		"ClusterRoleBinding", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
		"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
		"Role", "RoleBinding", "Role", "RoleBinding", // to Secrets
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("order of application (-want +got):\n%s", diff)
	}
}

func TestOnlyTheCertificatesOfABundleAreKept(t *testing.T) {
	cell := least()
	certificate := read(t, "ca.pem")
	cell.CABundle = append([]byte("# issued by someone\npassword: hunter2\n"), append(certificate, "trailing secret\n"...)...)
	r, err := registration.New(cell)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Cluster().Spec.CABundle; !bytes.Equal(got, certificate) {
		t.Errorf("the row's caBundle is\n%s\nwant the certificate alone", got)
	}
}

func TestACellWithoutRevocableNamespacesKeepsTheHubFromSecrets(t *testing.T) {
	r, err := registration.New(least())
	if err != nil {
		t.Fatal(err)
	}
	policy := policyOf(t, r, "cellcast-hub-secrets")
	const want = "the hub may not touch a Secret in payments-ci: register the cell with it as revocable"
	if got := admit(t, policy, request{operation: "CREATE", namespace: "payments-ci", object: secretOf(nil)}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, object := range r.OnCell() {
		if role, ok := object.(*rbacv1.Role); ok && slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "secrets") }) {
			t.Errorf("Role %s/%s gives access to Secrets", role.Namespace, role.Name)
		}
		if quota, ok := object.(*corev1.ResourceQuota); ok {
			t.Errorf("bounds the Secrets of namespace %s", quota.Namespace)
		}
	}
}

func TestRegistrationOfTheSameFactsIsTheSame(t *testing.T) {
	one, two := full(t), full(t)
	two.Mint[0], two.Mint[2] = two.Mint[2], two.Mint[0]
	two.Revocable = []string{"payments-ci", "web-ci"}
	if diff := cmp.Diff(string(onCell(t, one)), string(onCell(t, two))); diff != "" {
		t.Errorf("the order of --mint or --revocable shows (-one +two):\n%s", diff)
	}
}

func onCell(t *testing.T, c registration.Cell) []byte {
	t.Helper()
	r, err := registration.New(c)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := registration.YAML(r.OnCell()...)
	if err != nil {
		t.Fatal(err)
	}
	return manifests
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", name), got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(strings.Split(string(read(t, name)), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
