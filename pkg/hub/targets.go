package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/custody"
	"cellcast.io/cellcast/pkg/custody/vault"
	"cellcast.io/cellcast/pkg/kubeconfig/address"
	"cellcast.io/cellcast/pkg/kubeconfig/dial"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/podidentity"
	"cellcast.io/cellcast/pkg/rest/target"
	"cellcast.io/cellcast/pkg/secret"
)

// targets is this replica's hold on brought targets: the credential, the client
// that shows it, and the keys of the pods. Each is there from its first use until
// the row goes.
type targets struct {
	rows     targetRows
	custody  *custody.Custody // nil without a folder for tokens
	clients  *cell.Clients
	identity *podidentity.Validators
	// announced is where every hub with these flags would let a target be. Which
	// ranges its operator denies beside them is nobody's to find out by trying: a
	// target there can't be reached, and that's all.
	announced address.Policy

	mu        sync.Mutex
	connected map[types.UID]connected
}

// connected is a target that was connected, and what its row said then.
type connected struct {
	client *cell.Client
	at     custody.Connection
	ref    custody.Ref
	seen   string // status.credentialVersion
}

// errNoTokenDir is what a hub says that doesn't take brought targets.
var errNoTokenDir = noTokenDir{}

type noTokenDir struct{}

func (noTokenDir) Error() string { return "the hub has no --token-dir" }
func (noTokenDir) Advice() string {
	return "This hub takes no brought targets: its operator has to give it a --token-dir on tmpfs."
}

// newTargets returns the hold on targets, which has read and connected nothing.
func (s *Server) newTargets(tokens *cell.Tokens) (*targets, error) {
	settings := s.config.Targets
	permitted, err := address.New(settings.Addresses)
	if err != nil {
		return nil, fmt.Errorf("addresses of targets: %w", err)
	}
	announced, err := address.New(address.Options{Allow: settings.Addresses.Allow, Ports: settings.Addresses.Ports})
	if err != nil {
		return nil, fmt.Errorf("addresses of targets: %w", err)
	}
	t := &targets{rows: targetRows{s.manager.GetCache()}, announced: announced, connected: map[types.UID]connected{}}
	if settings.TokenDir != "" {
		source, err := newVault(settings.Vault, tokens)
		if err != nil {
			return nil, fmt.Errorf("vault: %w", err)
		}
		if t.custody, err = custody.New(custody.Options{
			Dir: settings.TokenDir, Anywhere: settings.TokenDirAnywhere,
			Secrets: custody.SecretsOf(s.config.HubClient), Vault: source, Permitted: announced, Audit: s.audit,
			Hub: types.NamespacedName{Namespace: s.config.Namespace, Name: s.config.ServiceAccount}, Clock: s.clock,
		}); err != nil {
			return nil, fmt.Errorf("--token-dir: %w", err)
		}
	}
	t.clients = cell.NewClients(t, cell.Options{
		Version: version.Get().GitVersion, Tracing: s.config.Generic.TracerProvider, Dial: dial.Context(permitted),
	})
	t.identity = podidentity.New(podSources{t, s.registry.View, s.clients})
	return t, nil
}

// newVault returns nil where the hub has none.
func newVault(v VaultSettings, tokens *cell.Tokens) (*vault.Source, error) {
	if v.Address == "" {
		return nil, nil
	}
	var roots []byte
	if v.CAFile != "" {
		var err error
		if roots, err = os.ReadFile(v.CAFile); err != nil {
			return nil, err
		}
	}
	return vault.New(vault.Options{
		Address: v.Address, CA: roots, Namespace: v.Namespace, Mount: v.Mount, AuthMount: v.AuthMount, Role: v.Role,
		Token: func(ctx context.Context) (secret.Value, error) { return tokens.Token(ctx, v.Audience) },
	})
}

// Token gives the client of a target the token in the target's file.
func (t *targets) Token(ctx context.Context, credential string) (secret.Value, error) {
	if t.custody == nil {
		return secret.Value{}, errNoTokenDir
	}
	return t.custody.Token(ctx, credential)
}

// Reject says that the target doesn't take it.
func (t *targets) Reject(credential string, token secret.Value) bool {
	return t.custody != nil && t.custody.Reject(credential, token)
}

// connect reads the credential anew and returns the client that shows it, and
// where it goes. The error is one of package custody; the version of what was read
// may be known all the same.
func (t *targets) connect(ctx context.Context, row *registryv1alpha1.ClusterTarget) (connected, error) {
	if t.custody == nil {
		return connected{}, errNoTokenDir
	}
	ref := custody.RefOf(row)
	at, err := t.custody.Load(ctx, ref)
	if err != nil {
		return connected{at: at}, err
	}
	client, err := t.clients.Bring(cell.Brought{Address: at.Address, Credential: at.Credential(), Endpoint: at.Server, CABundle: at.CAData})
	if err != nil {
		return connected{}, err
	}
	c := connected{client, at, ref, row.Status.CredentialVersion}
	t.mu.Lock()
	t.connected[row.UID] = c
	t.mu.Unlock()
	if !t.rows.exists(ctx, row) { // it went while its credential was read
		t.Forget(row.UID)
		return connected{}, fmt.Errorf("ClusterTarget %s/%s is gone", row.Namespace, row.Name)
	}
	return c, nil
}

// reach returns the target as it is connected, and connects it first where it
// isn't, or where row or source name another credential by now.
func (t *targets) reach(ctx context.Context, row *registryv1alpha1.ClusterTarget) (connected, error) {
	t.mu.Lock()
	c, ok := t.connected[row.UID]
	t.mu.Unlock()
	version := row.Status.CredentialVersion
	if !ok || !reflect.DeepEqual(c.ref, custody.RefOf(row)) || version != c.seen && version != c.at.Version {
		return t.connect(ctx, row)
	}
	if _, err := t.Token(ctx, c.at.Credential()); errors.Is(err, custody.ErrConnectionChanged) || errors.Is(err, custody.ErrNotLoaded) {
		return t.connect(ctx, row)
	}
	return c, nil
}

// Client is for the tokens that are minted on targets.
func (t *targets) Client(ctx context.Context, row *registryv1alpha1.ClusterTarget) (mint.Cell, target.Endpoint, error) {
	c, err := t.reach(ctx, row)
	if err != nil {
		return nil, target.Endpoint{}, err
	}
	return c.client, target.Endpoint{Server: c.at.Server, CABundle: c.at.CAData}, nil
}

// Forget lets go of a target.
func (t *targets) Forget(uid types.UID) {
	t.mu.Lock()
	delete(t.connected, uid)
	t.mu.Unlock()
	t.clients.Forget(registryv1alpha1.TargetAddress(uid))
	t.identity.Forget(podidentity.Target{UID: uid, Mode: podidentity.ModeJWKS})
	if t.custody == nil {
		return
	}
	if err := t.custody.Forget(uid); err != nil {
		klog.Background().Error(err, "The token file of a target that is gone can't be removed", "target", uid)
	}
}

// close removes every token file.
func (t *targets) close() {
	if t.custody == nil {
		return
	}
	if err := t.custody.Close(); err != nil {
		klog.Background().Error(err, "Token files of targets are left behind")
	}
}

// run waits for the end, for the token files must outlast the requests that are
// under way.
func (t *targets) run(ctx context.Context) error {
	<-ctx.Done()
	t.close()
	return nil
}

// endpoint is where the target was connected; empty while it wasn't.
func (t *targets) endpoint(uid types.UID) (server, caBundle string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.connected[uid]
	return c.at.Server, string(c.at.CAData)
}
