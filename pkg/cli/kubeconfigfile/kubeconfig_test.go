package kubeconfigfile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
)

func answer() (cellcastv1alpha1.CellReference, cellcastv1alpha1.Credential) {
	return cellcastv1alpha1.CellReference{Name: "eu-1", Endpoint: "https://eu-1.example.com", CABundle: []byte("PEM")},
		cellcastv1alpha1.Credential{
			Token:               "eyJh.eyJz.c2ln",
			Namespace:           "payments",
			ServiceAccountName:  "deployer",
			ExpirationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		}
}

func TestKubeconfigHoldsOneCellAndOneToken(t *testing.T) {
	cell, credential := answer()
	data, err := kubeconfigfile.Kubeconfig(cell, credential)
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: UEVN
    server: https://eu-1.example.com
  name: eu-1
contexts:
- context:
    cluster: eu-1
    namespace: payments
    user: payments/deployer
  name: eu-1
current-context: eu-1
kind: Config
users:
- name: payments/deployer
  user:
    token: eyJh.eyJz.c2ln
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("kubeconfig (-want +got):\n%s", diff)
	}
}

func TestKubeconfigIsUsedAsItIs(t *testing.T) {
	cell, credential := answer()
	data, err := kubeconfigfile.Kubeconfig(cell, credential)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.NewClientConfigFromBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	config, err := loaded.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{config.Host, config.BearerToken, string(config.CAData), namespace}
	if diff := cmp.Diff([]string{"https://eu-1.example.com", "eyJh.eyJz.c2ln", "PEM", "payments"}, got); diff != "" {
		t.Errorf("as client-go reads it (-want +got):\n%s", diff)
	}
}

func TestKubeconfigRefusesAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*cellcastv1alpha1.CellReference, *cellcastv1alpha1.Credential)
		want   string
	}{
		"without a cell": {
			func(c *cellcastv1alpha1.CellReference, _ *cellcastv1alpha1.Credential) { c.Name = "" },
			"the hub's answer names no cell"},
		"that sends the token in the clear": {
			func(c *cellcastv1alpha1.CellReference, _ *cellcastv1alpha1.Credential) {
				c.Endpoint = "http://eu-1.example.com"
			},
			`the hub's answer has no https endpoint for cell "eu-1"`},
		"with a user in the endpoint": {
			func(c *cellcastv1alpha1.CellReference, _ *cellcastv1alpha1.Credential) {
				c.Endpoint = "https://a:b@eu-1.example.com"
			},
			`the hub's answer has no https endpoint for cell "eu-1"`},
		"without a token": {
			func(_ *cellcastv1alpha1.CellReference, c *cellcastv1alpha1.Credential) { c.Token = "" },
			`the hub's answer has no usable token for cell "eu-1"`},
		"with a token of two lines": {
			func(_ *cellcastv1alpha1.CellReference, c *cellcastv1alpha1.Credential) { c.Token = "secret\nsecret" },
			`the hub's answer has no usable token for cell "eu-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			cell, credential := answer()
			test.change(&cell, &credential)
			_, err := kubeconfigfile.Kubeconfig(cell, credential)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the token: %v", err)
			}
		})
	}
}
