// Package custody has the credentials of brought targets while they're needed. A
// credential is its owner's, and stays where the owner keeps it, in a Secret or in
// Vault. One Custody serves one replica.
//
// It promises:
//
//   - The source is read live, by its one name, each time: never listed, never
//     watched, never cached. Each read is a record in the audit trail, with no
//     acting principal; what the trail didn't take isn't used.
//   - Only a Secret of type cellcast.io/kubeconfig with that one key, or a secret in
//     Vault under the owner's prefix, is taken; and of it only what the closed
//     parser takes.
//   - The token is kept in one place, a file on tmpfs (package tokendir), and read
//     from there for each call. It goes when the target is forgotten, when the
//     source says that it's gone or no longer the hub's to read, and at a clean end.
//   - A token is given for the connection that it was loaded with. Where the source
//     has come to name another server or other certificates, none is given until
//     Load is called again.
//   - A target that refuses its token makes the source be read once in ten seconds
//     at most. A source that hangs takes ten seconds, and nobody's time but that of
//     those who want that target.
//
// What this doesn't do: Go has no way to wipe memory. What was read of a source,
// and each token given for a call, stays in the process's memory until the garbage
// collector takes it and something else is written there; Vault's own token stays
// for its life. Whoever can read the process's memory, or its swap, reads them.
package custody

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/custody/tokendir"
	"cellcast.io/cellcast/pkg/custody/vault"
	"cellcast.io/cellcast/pkg/kubeconfig/address"
)

const (
	// readTimeout bounds one read of a source.
	readTimeout = 10 * time.Second
	// cooldown is the least time between two reads that a refused token causes.
	cooldown = 10 * time.Second
)

// Secrets reads a Secret of the hub, live.
type Secrets interface {
	Get(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Options are what a Custody is made of.
type Options struct {
	// Dir is the folder for token files, of this process alone. It's made where it
	// isn't there, and must be on tmpfs unless Anywhere.
	Dir      string
	Anywhere bool
	// Secrets is where secretRefs are read.
	Secrets Secrets
	// Vault is where vaultRefs are read; nil means that none can be.
	Vault *vault.Source
	// Permitted is where a target may be.
	Permitted address.Policy
	// Audit is the trail.
	Audit audit.Sink
	// Hub is the hub's own ServiceAccount, for what owners are told.
	Hub types.NamespacedName
	// Clock tells the time. Nil means the real one.
	Clock clock.PassiveClock
}

// Custody has the credentials. It's safe for use by many at once.
type Custody struct {
	options Options

	mu     sync.Mutex // not held while a source is read
	files  *tokendir.Dir
	held   map[string]*holding // by the target's address
	closed bool
}

// Connection is where a target is. It has no token: that is asked for by the
// address.
type Connection struct {
	// Address is target:<uid>.
	Address string
	// Server and CAData are those of the kubeconfig.
	Server string
	CAData []byte
	// Version is that of the source: secret:<resourceVersion> or vault:<number>.
	Version string
}

// Credential is what the connection's token is asked for by: the address, and a
// digest of where it goes.
func (c Connection) Credential() string {
	digest := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(c.Server), c.Server, c.CAData))
	return c.Address + "#" + hex.EncodeToString(digest[:8])
}

// ErrNotLoaded says that a token was asked for that isn't there: Load comes first.
var ErrNotLoaded = errors.New("the target's credential isn't loaded")

// ErrConnectionChanged says that the source names another server, or other
// certificates, than those that were loaded. Its token must not be shown to the
// old ones: Load, and a client of what it returns, come first.
var ErrConnectionChanged = errors.New("the target's kubeconfig names another server or other certificates than before")

var (
	errClosed    = errors.New("the custody of credentials has ended")
	errForgotten = errors.New("the target was forgotten while its credential was read")
)

// New returns a Custody that has no credential yet.
func New(o Options) (*Custody, error) {
	if o.Secrets == nil || o.Audit == nil || o.Hub.Namespace == "" || o.Hub.Name == "" {
		return nil, errors.New("custody needs a way to read Secrets, an audit trail and the hub's ServiceAccount")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	files, err := tokendir.Open(o.Dir, o.Anywhere)
	if err != nil {
		return nil, err
	}
	return &Custody{options: o, files: files, held: map[string]*holding{}}, nil
}

// Load reads a target's credential and keeps its token for Token. The error is an
// *Unavailable where the source can't be read, a *kubeconfig.Error in the chain
// where the file is refused, or a fault. A credential that was loaded before is
// kept through a failure that may pass, unless the row names another source now.
// Of a file that is refused the Connection has the version alone.
func (c *Custody) Load(ctx context.Context, ref Ref) (Connection, error) {
	ref.Source = *ref.Source.DeepCopy()
	h, err := c.holding(ref)
	if err != nil {
		return Connection{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := h.begin(ctx); err != nil {
		return Connection{}, fmt.Errorf("waiting for another read of the credential of %s: %w", ref.address(), err)
	}
	defer h.end()
	k, version, err := c.read(ctx, ref)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		return Connection{Version: version}, errors.Join(err, c.lose(h, ref, err))
	}
	return c.keep(h, ref, k, version)
}

// Forget removes what is held of a target, its file above all.
func (c *Custody) Forget(uid types.UID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	delete(c.held, registryv1alpha1.TargetAddress(uid))
	return c.files.Remove(uid)
}

// Close removes all files, and gives no token any more.
func (c *Custody) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	clear(c.held)
	return c.files.Close()
}
