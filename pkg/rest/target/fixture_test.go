package target

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/celltest"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/rest/credential"
	"cellcast.io/cellcast/pkg/secret"
)

// trail keeps records, or loses them.
type trail struct {
	records []audit.Record
	lost    error
}

func (t *trail) Write(r audit.Record) error {
	t.records = append(t.records, r)
	return t.lost
}

// rows are the rows that a replica knows, by namespace/name.
type rows map[string]*registryv1alpha1.ClusterTarget

func (r rows) Target(_ context.Context, namespace, name string) (*registryv1alpha1.ClusterTarget, bool) {
	row, ok := r[namespace+"/"+name]
	return row, ok
}

// ready is the target team-a/gpu of the group ml, Ready and good for tokens.
func ready() *registryv1alpha1.ClusterTarget {
	return &registryv1alpha1.ClusterTarget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "gpu", UID: "uid-1", Generation: 3, ResourceVersion: "7",
			Labels: map[string]string{registryv1alpha1.LabelEnv: "stage"},
		},
		Spec: registryv1alpha1.ClusterTargetSpec{
			Owner: registryv1alpha1.TargetOwner{Group: "ml"}, Namespace: "ml-runs", ServiceAccountName: "runner",
		},
		Status: registryv1alpha1.ClusterTargetStatus{
			ObservedGeneration: 3, State: registryv1alpha1.TargetReady,
			Capabilities: []registryv1alpha1.TargetCapability{registryv1alpha1.CapabilityAgentTurns, registryv1alpha1.CapabilityTokens},
		},
	}
}

// custody shows a target what it believes: the registered credential, as long as
// it can be read.
type custody struct {
	audience string
	tokens   *cell.Tokens
	gone     error // the source can't be read when a token is needed
}

// registered is what the credential is asked for by.
const registered = "the credential of uid-1"

func (c *custody) Token(ctx context.Context, name string) (secret.Value, error) {
	if name != registered {
		return secret.Value{}, errors.New("there is no " + name)
	}
	if c.gone != nil {
		return secret.Value{}, c.gone
	}
	return c.tokens.Token(ctx, c.audience)
}

func (*custody) Reject(string, secret.Value) bool { return false }

// world is a target's API, and the storage that mints there.
type world struct {
	*TokenStorage
	api     *celltest.Cell
	custody *custody
	row     *registryv1alpha1.ClusterTarget
	rows    rows
	trail   *trail
	at      Endpoint
	clients *cell.Clients
	refuses error // no client can be had
	asked   int   // how often a client was asked for
}

func (w *world) Client(_ context.Context, row *registryv1alpha1.ClusterTarget) (mint.Cell, Endpoint, error) {
	w.asked++
	if w.refuses != nil {
		return nil, Endpoint{}, w.refuses
	}
	client, err := w.clients.Bring(cell.Brought{
		Address: registryv1alpha1.TargetAddress(row.UID), Credential: registered, Endpoint: w.at.Server, CABundle: w.at.CABundle,
	})
	return client, w.at, err
}

// noAgents knows of no agent: a brought target has none.
type noAgents struct{}

func (noAgents) Describe(string, time.Time) (capacity.Description, bool) {
	return capacity.Description{}, false
}

func newWorld(t *testing.T) *world {
	t.Helper()
	hub := celltest.NewHub(nil)
	tokens, err := cell.NewTokens(hub, cell.TokenOptions{ServiceAccount: "cellcast-hub"})
	if err != nil {
		t.Fatal(err)
	}
	api := celltest.New(t, "gpu", hub, nil)
	api.AddServiceAccount("ml-runs", "runner")
	api.AllowMint("ml-runs", "runner")
	w := &world{
		api: api, custody: &custody{audience: api.Audience(), tokens: tokens}, row: ready(), trail: &trail{},
		at: Endpoint{Server: api.Cluster().Spec.Endpoint, CABundle: api.Cluster().Spec.CABundle},
	}
	w.rows = rows{"team-a/gpu": w.row}
	w.clients = cell.NewClients(w.custody, cell.Options{Version: "test"})
	w.TokenStorage = &TokenStorage{
		Rows: w.rows, Targets: w,
		Issuer: &credential.Issuer{Capacity: noAgents{}, Ceiling: time.Hour, Audit: w.trail, Now: time.Now},
	}
	return w
}

// as is the context of a request in namespace team-a.
func as(t *testing.T, u user.Info) context.Context {
	t.Helper()
	return genericapirequest.WithNamespace(genericapirequest.WithUser(t.Context(), u), "team-a")
}

var (
	dana    = &user.DefaultInfo{Name: "dana", Groups: []string{"ml", "system:authenticated"}}
	mallory = &user.DefaultInfo{Name: "mallory", Groups: []string{"web", "system:authenticated"}}
)
