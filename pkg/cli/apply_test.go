package cli_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fakeCluster takes server-side applies, and has at most one row.
type fakeCluster struct {
	*httptest.Server
	// row is the JSON of the row eu-1; empty where there is none.
	row string
	// secrets are the names of the Secrets that carry no label.
	secrets []string
	// fails are the paths that fail, and how.
	fails map[string]*apierrors.StatusError

	mu      sync.Mutex
	applied []string
	rows    []string
}

func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()
	f := &fakeCluster{fails: map[string]*apierrors.StatusError{}}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const row = "/apis/registry.cellcast.io/v1alpha1/clusters/eu-1"
		body, _ := io.ReadAll(r.Body)
		switch {
		case f.fails[r.URL.Path] != nil:
			answer(w, f.fails[r.URL.Path])
		case r.Method == http.MethodGet && r.URL.Path == row && f.row != "":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, f.row)
		case r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces/payments-ci/secrets":
			f.list(w, r)
		case r.Method == http.MethodPatch && r.Header.Get("Content-Type") == "application/apply-patch+yaml" &&
			r.URL.Query().Get("fieldManager") == "cellcast-register" && r.URL.Query().Get("force") != "true":
			f.mu.Lock()
			f.applied = append(f.applied, r.URL.Path)
			if r.URL.Path == row {
				f.rows = append(f.rows, string(body))
			}
			f.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			w.Write(body)
		default:
			answer(w, apierrors.NewNotFound(schema.GroupResource{}, ""))
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// list answers with the names of Secrets, to who asks for no more.
func (f *fakeCluster) list(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("labelSelector") != "!cellcast.io/revoke-after-seconds" || !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		answer(w, apierrors.NewBadRequest("it asks for more than names, or for those of revocable credentials too"))
		return
	}
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for _, name := range f.secrets {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "payments-ci", Name: name}})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// register runs a registration with --apply, of a cell and a hub that are both
// the fake.
func (f *fakeCluster) register(t *testing.T, args ...string) answerOf {
	t.Helper()
	c := newCaller(t)
	c.file("cluster.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})))
	config := c.file("both.kubeconfig", `apiVersion: v1
kind: Config
contexts: [{name: admin, context: {cluster: it, user: me}}, {name: hub, context: {cluster: it, user: me}}]
clusters: [{name: it, cluster: {server: "`+f.URL+`", certificate-authority: cluster.pem}}]
users: [{name: me, user: {token: mine}}]
`)
	return c.run(append([]string{"cellcast", "register", "cell", "eu-1", "--kubeconfig", config, "--context", "admin",
		"--label", "env=dev", "--mint", "payments/deployer", "--hub-issuer", "https://hub.example.com",
		"--reporter-issuer", "https://eu-1.example.com", "--apply", "--hub-context", "hub"}, args...)...)
}

func TestApplyBoundsFirstAndTheRowLast(t *testing.T) {
	f := newFakeCluster(t)
	got := f.register(t, "--revocable", "payments-ci")
	if got.code != 0 {
		t.Fatalf("exit %d: %s", got.code, got.err)
	}
	want := []string{
		"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/cellcast-hub-mint",
		"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/cellcast-hub-mint",
		"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/cellcast-hub-secrets",
		"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/cellcast-hub-secrets",
		"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/cellcast-revocable-secrets",
		"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/cellcast-revocable-secrets",
		"/api/v1/namespaces/payments-ci/resourcequotas/cellcast-revocable-secrets",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cellcast-hub-issuer-discovery",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/cellcast-hub-pod-identity",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cellcast-hub-pod-identity",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/payments/roles/cellcast-hub-mint",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/payments/rolebindings/cellcast-hub-mint",
		"/api/v1/namespaces/cellcast-system",
		"/api/v1/namespaces/cellcast-system/serviceaccounts/cellcast-agent",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/cellcast-agent",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cellcast-agent",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/cellcast-system/roles/cellcast-agent",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/cellcast-system/rolebindings/cellcast-agent",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/payments-ci/roles/cellcast-hub-secrets",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/payments-ci/rolebindings/cellcast-hub-secrets",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/payments-ci/roles/cellcast-agent-secrets",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/payments-ci/rolebindings/cellcast-agent-secrets",
		"/apis/registry.cellcast.io/v1alpha1/clusters/eu-1",
	}
	if diff := cmp.Diff(want, f.applied); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if !strings.Contains(got.err, "Applied Role cellcast-hub-mint in namespace payments to admin.\n") ||
		!strings.HasSuffix(got.err, "Applied Cluster eu-1 to hub.\nWhat follows remains to be done by hand, on the control plane of the cell. Until then the hub has no access to it.\n") {
		t.Errorf("stderr is\n%s", got.err)
	}
	if strings.Contains(got.out, "kind: Cluster\n") || !strings.HasPrefix(got.out, "# Part 3 of 4") || !strings.Contains(got.out, "\n---\n# Part 4 of 4") {
		t.Errorf("what remains is\n%s", got.out)
	}
}

func TestApplyKeepsTheStateOfARow(t *testing.T) {
	for name, test := range map[string]struct {
		row  string
		args []string
		want string // in the row that is applied; empty for none
	}{
		"a new row has none":                   {want: ""},
		"a drained cell stays drained":         {row: `{"apiVersion":"registry.cellcast.io/v1alpha1","kind":"Cluster","metadata":{"name":"eu-1"},"spec":{"state":"DRAINING"}}`, want: `"state":"DRAINING"`},
		"unless another state is asked for it": {row: `{"apiVersion":"registry.cellcast.io/v1alpha1","kind":"Cluster","metadata":{"name":"eu-1"},"spec":{"state":"DRAINING"}}`, args: []string{"--state", "LIVE"}, want: `"state":"LIVE"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeCluster(t)
			f.row = test.row
			if got := f.register(t, test.args...); got.code != 0 {
				t.Fatalf("exit %d: %s", got.code, got.err)
			}
			if len(f.rows) != 1 || strings.Contains(f.rows[0], `"state"`) != (test.want != "") || !strings.Contains(f.rows[0], test.want) {
				t.Errorf("the row is %s, want %s in it", f.rows, test.want)
			}
		})
	}
}

func TestApplyRefusesANamespaceWithSecretsOfOthers(t *testing.T) {
	const secrets = "/api/v1/namespaces/payments-ci/secrets"
	for name, test := range map[string]struct {
		secrets []string
		fails   *apierrors.StatusError
		want    string
	}{
		"that hold a password, say": {secrets: []string{"database", "registry"},
			want: "Error: namespace payments-ci of admin holds Secrets that aren't those of revocable credentials, 2 in all, such as database: nothing was applied, " +
				"for the agent may read every Secret of a revocable namespace; move what kubectl --context admin --namespace payments-ci get secrets lists, or name another namespace\n"},
		"that can't be listed": {fails: apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil),
			want: "Error: see whether namespace payments-ci of admin holds Secrets: nothing was applied, for it takes someone who may list them there to let the agent do it: secrets is forbidden: <nil>\n"},
		"that the cell doesn't list now": {fails: apierrors.NewInternalError(errors.New("no leader")),
			want: "Error: see whether namespace payments-ci of admin holds Secrets: nothing was applied: Internal error occurred: no leader\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeCluster(t)
			f.secrets = test.secrets
			if test.fails != nil {
				f.fails[secrets] = test.fails
			}
			got := f.register(t, "--revocable", "payments-ci")
			if got.code != 1 || !strings.HasSuffix(got.err, test.want) {
				t.Errorf("exit %d\n%s", got.code, got.err)
			}
			if len(f.applied) > 0 || got.out != "" {
				t.Errorf("applied %v, printed %s", f.applied, got.out)
			}
		})
	}
}

func TestApplyStopsAndSaysWhatToDo(t *testing.T) {
	const role = "/apis/rbac.authorization.k8s.io/v1/namespaces/payments/roles/cellcast-hub-mint"
	const row = "/apis/registry.cellcast.io/v1alpha1/clusters/eu-1"
	for name, test := range map[string]struct {
		path string
		err  *apierrors.StatusError
		want string
	}{
		"when the namespace isn't there": {role, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "payments"),
			"Error: apply Role cellcast-hub-mint in namespace payments to admin: the namespace isn't there: kubectl --context admin create namespace payments\n"},
		"when someone else set a field": {role, apierrors.NewApplyConflict(nil, "conflict with \"kubectl\": .rules"),
			"Error: apply Role cellcast-hub-mint in namespace payments to admin: someone else has set what cellcast would set; " +
				"see --only, and apply it with kubectl apply --server-side --force-conflicts if that's right: conflict with \"kubectl\": .rules\n"},
		"when the present row can't be read": {row, apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "eu-1", nil),
			"Error: read the cell's row at the hub: clusters \"eu-1\" is forbidden: <nil>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeCluster(t)
			f.fails[test.path] = test.err
			got := f.register(t)
			if got.code != 1 || !strings.HasSuffix(got.err, test.want) {
				t.Errorf("exit %d\n%s", got.code, got.err)
			}
			for _, path := range f.applied {
				if path == test.path || path == row {
					t.Errorf("went on to %s", path)
				}
			}
			if got.out != "" {
				t.Errorf("printed what remains: %s", got.out)
			}
		})
	}
}
