// Package celltest has a cell's API server, and the hub's as far as the hub's
// own tokens go, that behave as real ones do where the hub looks: trust by
// audience, RBAC on ServiceAccounts, tokens that are signed and expire, and the
// ways in which all that fails.
package celltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// Cell is a cell's API server on a TLS port of the loopback.
type Cell struct {
	name   string
	hub    *Hub
	clock  clock.PassiveClock
	server *httptest.Server
	key    *ecdsa.PrivateKey

	mu        sync.Mutex
	accounts  map[string]bool // the ServiceAccounts that exist, as namespace/name
	mintable  map[string]bool // those that RBAC lets the hub create tokens of
	revocable map[string]bool // the namespaces in which RBAC lets the hub create and delete Secrets
	secrets   map[string]corev1.Secret
	unbound   bool
	ahead     time.Duration
	distrusts bool
	down      bool
	hung      chan struct{}
	canned    *Canned
	shortest  time.Duration
	tamper    func(*Claims)
	seen      []Request
}

// Request is what the cell saw of a request; of the token, only whose it was.
type Request struct {
	Method, Path       string
	UserAgent, AuditID string
	// User is who the cell took the client for; empty where it believed nobody.
	User string
}

// Echo stands in the body of a Canned for the request's Authorization header.
const Echo = "{{authorization}}"

// Canned is an answer that has nothing to do with the question.
type Canned struct {
	Code   int
	Header http.Header
	Body   string
}

// New starts a cell that trusts the hub by the audience cellcast:cell:<name>.
// It has no ServiceAccount
// and no Role. A nil clock is the real one.
func New(t testing.TB, name string, hub *Hub, now clock.PassiveClock) *Cell {
	t.Helper()
	if now == nil {
		now = clock.RealClock{}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("making the signing key of cell %s: %v", name, err)
	}
	c := &Cell{name: name, hub: hub, clock: now, key: key, accounts: map[string]bool{}, mintable: map[string]bool{},
		revocable: map[string]bool{}, secrets: map[string]corev1.Secret{}}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(c.serve))
	c.server.EnableHTTP2 = true
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that tests make fail
	c.server.StartTLS()
	t.Cleanup(func() {
		c.Hang(false)
		c.server.Close()
	})
	return c
}

// Audience is what the hub's tokens for this cell are for.
func (c *Cell) Audience() string { return "cellcast:cell:" + c.name }

// Cluster is the row of the cell: LIVE, in env dev.
func (c *Cell) Cluster() *registryv1alpha1.Cluster {
	return &registryv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: c.name, Labels: map[string]string{registryv1alpha1.LabelEnv: "dev"}},
		Spec: registryv1alpha1.ClusterSpec{
			Endpoint: c.server.URL,
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw}),
			State:    registryv1alpha1.StateLive,
			Trust:    registryv1alpha1.ClusterTrust{Audience: c.Audience()},
		},
	}
}

// AddServiceAccount makes a ServiceAccount.
func (c *Cell) AddServiceAccount(namespace, name string) {
	c.set(func() { c.accounts[namespace+"/"+name] = true })
}

// AllowMint is the Role that lets the hub create tokens of a ServiceAccount. As
// with a real one, what it names need not exist.
func (c *Cell) AllowMint(namespace, name string) {
	c.set(func() { c.mintable[namespace+"/"+name] = true })
}

// AllowRevocation is the Role that lets the hub create and delete Secrets in a
// namespace.
func (c *Cell) AllowRevocation(namespace string) { c.set(func() { c.revocable[namespace] = true }) }

// Unbind makes the cell issue tokens that aren't bound to what was asked, as an
// old or tampering one would.
func (c *Cell) Unbind(on bool) { c.set(func() { c.unbound = on }) }

// StampSecrets makes the cell say that it made a Secret so much later than now.
func (c *Cell) StampSecrets(ahead time.Duration) { c.set(func() { c.ahead = ahead }) }

// Secrets are the Secrets that the cell has, by namespace/name.
func (c *Cell) Secrets() map[string]corev1.Secret {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.secrets)
}

// Distrust makes the cell answer 401 to the hub, whatever it shows.
func (c *Cell) Distrust(on bool) { c.set(func() { c.distrusts = on }) }

// Down makes connections break without an answer.
func (c *Cell) Down(on bool) { c.set(func() { c.down = on }) }

// Hang makes the cell take requests and answer none until Hang(false).
func (c *Cell) Hang(on bool) {
	c.set(func() {
		switch {
		case on && c.hung == nil:
			c.hung = make(chan struct{})
		case !on && c.hung != nil:
			close(c.hung)
			c.hung = nil
		}
	})
}

// Answer makes the cell answer everything with this, until Answer(nil).
func (c *Cell) Answer(canned *Canned) { c.set(func() { c.canned = canned }) }

// ShortenTo bounds the life of the tokens that the cell issues; zero ends that.
func (c *Cell) ShortenTo(life time.Duration) { c.set(func() { c.shortest = life }) }

// Tamper changes the claims of tokens that the cell issues from now on, as a
// cell in the wrong hands might; nil ends that.
func (c *Cell) Tamper(change func(*Claims)) { c.set(func() { c.tamper = change }) }

// Requests are the requests that came, in order.
func (c *Cell) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Request(nil), c.seen...)
}

func (c *Cell) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// user is whom the cell takes the client for.
func (c *Cell) user(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || c.distrusts || !c.hub.Believes(token, c.Audience()) {
		return ""
	}
	return "cellcast-hub:" + HubSubject
}
