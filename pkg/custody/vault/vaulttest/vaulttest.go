// Package vaulttest has a Vault that behaves as a real one where the hub looks:
// Kubernetes auth, tokens that end and can be revoked, one policy, a KV version 2
// engine with versions, and the ways in which all that fails.
package vaulttest

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the Vault is set up with.
const (
	Mount     = "cellcast"
	AuthMount = "kubernetes"
	Role      = "cellcast-hub"
	// JWT is the token of the hub's ServiceAccount that it believes until Believe
	// says otherwise.
	JWT = "the-hubs-own-token"
)

// Request is what the Vault saw of a request.
type Request struct {
	Method string
	// URI is as it came; Path is what Vault makes of it, below /v1/.
	URI, Path string
	Header    http.Header
}

// Server is a Vault on a TLS port of the loopback.
type Server struct {
	server *httptest.Server

	mu      sync.Mutex
	believe func(ctx context.Context, jwt string) error
	lease   time.Duration
	tokens  map[string]bool
	issued  int
	secrets map[string]stored
	denied  bool
	sealed  bool
	canned  http.HandlerFunc
	seen    []Request
}

type stored struct {
	version int
	data    map[string]any // nil where the newest version was deleted
}

// New starts a Vault that ends with the test.
func New(t testing.TB) *Server {
	s := Start()
	t.Cleanup(s.Close)
	return s
}

// Start starts a Vault.
func Start() *Server {
	s := &Server{lease: 15 * time.Minute, tokens: map[string]bool{}, secrets: map[string]stored{}}
	s.believe = func(_ context.Context, jwt string) error {
		if jwt != JWT {
			return errors.New("it's another token")
		}
		return nil
	}
	s.server = httptest.NewUnstartedServer(s)
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.StartTLS()
	return s
}

// Close ends it.
func (s *Server) Close() { s.server.Close() }

// Address is its URL.
func (s *Server) Address() string { return s.server.URL }

// Host is its address and port.
func (s *Server) Host() string { return strings.TrimPrefix(s.server.URL, "https://") }

// CA is what its certificate is checked by. It's good for example.com too.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
}

// Put writes a new version of a secret.
func (s *Server) Put(path string, data map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[path] = stored{s.secrets[path].version + 1, data}
}

// Delete deletes the newest version of a secret.
func (s *Server) Delete(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[path] = stored{s.secrets[path].version, nil}
}

// Believe says by what it knows the hub's ServiceAccount from now on: an error
// refuses the login.
func (s *Server) Believe(check func(ctx context.Context, jwt string) error) {
	s.set(func() { s.believe = check })
}

// Lease is how long its tokens live from now on; zero is for ever.
func (s *Server) Lease(lease time.Duration) { s.set(func() { s.lease = lease }) }

// Revoke ends all its tokens.
func (s *Server) Revoke() { s.set(func() { clear(s.tokens) }) }

// Deny takes away what the policy lets the hub read.
func (s *Server) Deny(is bool) { s.set(func() { s.denied = is }) }

// Seal seals it, or unseals it.
func (s *Server) Seal(is bool) { s.set(func() { s.sealed = is }) }

// Answer makes it answer everything by the handler; nil ends that.
func (s *Server) Answer(handler http.HandlerFunc) { s.set(func() { s.canned = handler }) }

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Seen returns what it was asked, logins aside.
func (s *Server) Seen() []Request { return s.requests(false) }

// Logins returns what it was asked as logins.
func (s *Server) Logins() []Request { return s.requests(true) }

func (s *Server) requests(logins bool) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Request
	for _, r := range s.seen {
		if (r.Path == "auth/"+AuthMount+"/login") == logins {
			found = append(found, r)
		}
	}
	return found
}

// ServeHTTP answers as Vault does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	at := strings.TrimPrefix(r.URL.Path, "/v1/")
	s.seen = append(s.seen, Request{r.Method, r.RequestURI, at, r.Header.Clone()})
	canned := s.canned
	s.mu.Unlock()
	if canned != nil {
		canned(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch secret, isSecret := strings.CutPrefix(at, Mount+"/data/"); {
	case s.sealed:
		refuse(w, http.StatusServiceUnavailable, "Vault is sealed")
	case at == "auth/"+AuthMount+"/login":
		s.login(w, r)
	case !s.tokens[r.Header.Get("X-Vault-Token")] || !isSecret || s.denied:
		refuse(w, http.StatusForbidden, "permission denied")
	default:
		s.read(w, secret)
	}
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Role, JWT string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Role != Role {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("invalid role name %q", asked.Role))
		return
	}
	if s.believe(r.Context(), asked.JWT) != nil {
		refuse(w, http.StatusForbidden, "permission denied")
		return
	}
	s.issued++
	token := fmt.Sprintf("hvs.vaults-token-%d", s.issued)
	s.tokens[token] = true
	answer(w, http.StatusOK, map[string]any{"auth": map[string]any{
		"client_token": token, "lease_duration": int(s.lease / time.Second), "renewable": true}})
}

func (s *Server) read(w http.ResponseWriter, path string) {
	secret, known := s.secrets[path]
	if !known {
		answer(w, http.StatusNotFound, map[string]any{"errors": []string{}})
		return
	}
	status, metadata := http.StatusOK, map[string]any{"version": secret.version, "deletion_time": "", "destroyed": false}
	data := map[string]any{"data": secret.data, "metadata": metadata}
	if secret.data == nil {
		status, metadata["deletion_time"], data["data"] = http.StatusNotFound, "2026-01-02T03:04:05Z", nil
	}
	answer(w, status, map[string]any{"request_id": "a", "lease_id": "", "data": data})
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]any{"errors": []string{message}})
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
