package custody

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/custody/vault"
	"cellcast.io/cellcast/pkg/custody/vault/vaulttest"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/secret"
)

const (
	uidA = types.UID("aaaaaaaa-0000-0000-0000-000000000001")
	uidB = types.UID("bbbbbbbb-0000-0000-0000-000000000002")
	// Each token has the word canary in it, which no error and no record may have.
	oldToken = "canary-old"
	newToken = "canary-new"
	server   = "https://api.acme.example"
)

var addressA, addressB = registryv1alpha1.TargetAddress(uidA), registryv1alpha1.TargetAddress(uidB)

// world is a Custody with a hub's Secrets, a Vault and a trail.
type world struct {
	*Custody
	dir     string
	secrets *fakeSecrets
	vault   *vaulttest.Server
	trail   *trail
	ca      []byte
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		dir: filepath.Join(t.TempDir(), "tokens"), trail: &trail{}, ca: newCA(t),
		secrets: &fakeSecrets{held: map[string]*corev1.Secret{}, forbidden: map[string]bool{}, hung: map[string]bool{}, reads: map[string]int{}},
	}
	return w.open(t, Options{})
}

// withVault has a Vault too. It isn't for bubbles of synctest.
func withVault(t *testing.T) *world {
	t.Helper()
	w := &world{dir: filepath.Join(t.TempDir(), "tokens"), trail: &trail{}, ca: newCA(t), secrets: &fakeSecrets{}, vault: vaulttest.New(t)}
	source, err := vault.New(vault.Options{Address: w.vault.Address(), CA: w.vault.CA(), Mount: vaulttest.Mount,
		AuthMount: vaulttest.AuthMount, Role: vaulttest.Role,
		Token: func(context.Context) (secret.Value, error) { return secret.New(vaulttest.JWT), nil }})
	if err != nil {
		t.Fatal(err)
	}
	return w.open(t, Options{Vault: source})
}

func (w *world) open(t *testing.T, o Options) *world {
	t.Helper()
	o.Dir, o.Anywhere, o.Secrets, o.Audit = w.dir, true, w.secrets, w.trail
	o.Hub = types.NamespacedName{Namespace: "cellcast-system", Name: "cellcast-hub"}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	w.Custody = c
	return w
}

// file is a kubeconfig of the closed form.
func (w *world) file(t *testing.T, at, token string) []byte {
	t.Helper()
	k, err := kubeconfig.New(at, w.ca, secret.New(token))
	if err != nil {
		t.Fatal(err)
	}
	return k.Encode()
}

// put writes the Secret payments/NAME.
func (w *world) put(t *testing.T, name, at, token string) {
	t.Helper()
	w.secrets.put(name, &corev1.Secret{Type: registryv1alpha1.SecretTypeKubeconfig,
		Data: map[string][]byte{registryv1alpha1.SecretKeyKubeconfig: w.file(t, at, token)}})
}

func (w *world) mustLoad(t *testing.T, ref Ref) Connection {
	t.Helper()
	connection, err := w.Load(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return connection
}

// Token asks for the token of the connection that is loaded, as its client does.
func (w *world) Token(ctx context.Context, address string) (secret.Value, error) {
	return w.Custody.Token(ctx, w.credential(address))
}

// Reject says the same of it.
func (w *world) Reject(address string, token secret.Value) bool {
	return w.Custody.Reject(w.credential(address), token)
}

func (w *world) credential(address string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.held[address]; h != nil {
		return h.connection.Credential()
	}
	return address
}

// wantToken fails unless Token gives this one.
func (w *world) wantToken(t *testing.T, address, want string) {
	t.Helper()
	got, err := w.Token(t.Context(), address)
	if err != nil || got.Reveal() != want {
		t.Errorf("Token gives %s, %v, not %s", got.Reveal(), err, want)
	}
}

// onDisk is what files there are.
func (w *world) onDisk(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func secretRef(uid types.UID, name string) Ref {
	return Ref{Target: uid, Namespace: "payments", Name: "eu", Owner: registryv1alpha1.TargetOwner{User: "alice"},
		Source: registryv1alpha1.TargetCredentialRef{SecretRef: &registryv1alpha1.TargetSecretRef{Name: name}}}
}

func vaultRef(uid types.UID, path, key string) Ref {
	return Ref{Target: uid, Namespace: "payments", Name: "eu", Owner: registryv1alpha1.TargetOwner{User: "alice"},
		Source: registryv1alpha1.TargetCredentialRef{VaultRef: &registryv1alpha1.TargetVaultRef{Path: path, Key: key}}}
}

// fakeSecrets are the Secrets of the hub's namespace payments, with RBAC.
type fakeSecrets struct {
	mu        sync.Mutex
	held      map[string]*corev1.Secret
	forbidden map[string]bool
	hung      map[string]bool
	down      bool
	version   int
	reads     map[string]int
}

func (f *fakeSecrets) put(name string, s *corev1.Secret) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	s.Namespace, s.Name, s.ResourceVersion = "payments", name, fmt.Sprint(f.version)
	f.held[name] = s
}

func (f *fakeSecrets) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeSecrets) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads[name]
}

func (f *fakeSecrets) Get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	f.mu.Lock()
	hung := f.hung[name]
	f.reads[name]++
	f.mu.Unlock()
	if hung {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	secrets := schema.GroupResource{Resource: "secrets"}
	s, known := f.held[name]
	switch {
	case f.down:
		return nil, apierrors.NewInternalError(errors.New("etcd is away"))
	case f.forbidden[name]:
		return nil, apierrors.NewForbidden(secrets, name, errors.New(`User "system:serviceaccount:cellcast-system:cellcast-hub" cannot get`))
	case !known || s.Namespace != namespace:
		return nil, apierrors.NewNotFound(secrets, name)
	default:
		return s.DeepCopy(), nil
	}
}

// trail keeps records, or loses them.
type trail struct {
	mu      sync.Mutex
	records []audit.Record
	lost    bool
}

func (t *trail) Write(r audit.Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost {
		return errors.New("the disk is full")
	}
	t.records = append(t.records, r)
	return nil
}

func (t *trail) lose(is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = is
}

// all are the records, each as OUTCOME TARGET KIND NAME, and must have nothing else
// but their event and times.
func (t *trail) all(tb testing.TB) []string {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, r := range t.records {
		if r.Time.IsZero() || r.Event != audit.EventCredentialRead {
			tb.Errorf("a record of %s at %s", r.Event, r.Time)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s", r.Outcome, r.Target, r.Kind, r.Name))
		if rest := fmt.Sprintf("%+v", audit.Record{User: r.User, Issuer: r.Issuer, Subject: r.Subject, Message: r.Message, Reason: r.Reason}); rest != fmt.Sprintf("%+v", audit.Record{}) {
			tb.Errorf("a record names somebody: %s", rest)
		}
	}
	return lines
}

func newCA(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
