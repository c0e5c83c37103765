package vault_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"cellcast.io/cellcast/pkg/custody/vault"
	"cellcast.io/cellcast/pkg/custody/vault/vaulttest"
	"cellcast.io/cellcast/pkg/secret"
)

const text = "the-text-under-the-key"

func hubToken(context.Context) (secret.Value, error) { return secret.New(vaulttest.JWT), nil }

func options(server *vaulttest.Server) vault.Options {
	return vault.Options{Address: server.Address(), CA: server.CA(), Mount: vaulttest.Mount,
		AuthMount: vaulttest.AuthMount, Role: vaulttest.Role, Token: hubToken}
}

func source(t testing.TB, o vault.Options) *vault.Source {
	t.Helper()
	s, err := vault.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustRead reads users/alice/prod.
func mustRead(t *testing.T, s *vault.Source) (string, string) {
	t.Helper()
	got, version, err := s.Read(t.Context(), "users/alice/prod", "kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	return got.Reveal(), version
}

// withSecret is a Vault that has users/alice/prod.
func withSecret(t *testing.T) *vaulttest.Server {
	server := vaulttest.New(t)
	server.Put("users/alice/prod", map[string]any{"kubeconfig": text, "other": 1})
	return server
}

func TestReadGivesTheNewestVersion(t *testing.T) {
	server := withSecret(t)
	s := source(t, options(server))
	if got, version := mustRead(t, s); got != text || version != "1" {
		t.Errorf("got %d bytes of version %s", len(got), version)
	}
	server.Put("users/alice/prod", map[string]any{"kubeconfig": "newer"})
	if got, version := mustRead(t, s); got != "newer" || version != "2" {
		t.Errorf("got %d bytes of version %s", len(got), version)
	}
}

// What comes after one decoding, which is what Vault does, is the path as given.
func TestThePathReachesVaultLiterally(t *testing.T) {
	tests := map[string]struct{ path, uri string }{
		"plain":                     {"users/alice/prod", "/v1/cellcast/data/users/alice/prod"},
		"with characters of a path": {"users/a@b:c+d=e~f/prod", "/v1/cellcast/data/users/a@b:c+d=e~f/prod"},
		"an escaped slash":          {"users/https:%2F%2Fidp%23alice/prod", "/v1/cellcast/data/users/https:%252F%252Fidp%2523alice/prod"},
		"escaped dots":              {"users/%2e%2e/prod", "/v1/cellcast/data/users/%252e%252e/prod"},
		"a question mark":           {"users/alice/p?version=1", "/v1/cellcast/data/users/alice/p%3Fversion=1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := vaulttest.New(t)
			server.Put(test.path, map[string]any{"kubeconfig": text})
			if _, _, err := source(t, options(server)).Read(t.Context(), test.path, "kubeconfig"); err != nil {
				t.Error(err)
			}
			seen := server.Seen()
			if len(seen) != 1 || seen[0].URI != test.uri || seen[0].Path != "cellcast/data/"+test.path {
				t.Errorf("Vault saw %+v", seen)
			}
		})
	}
}

func TestAPathThatWouldBecomeAnotherIsNotAsked(t *testing.T) {
	server := withSecret(t)
	s := source(t, options(server))
	for _, path := range []string{"users/bob/../alice/prod", "users//alice/prod", "users/./alice/prod", "users/alice/prod/", "../data/users/alice/prod"} {
		_, _, err := s.Read(t.Context(), path, "kubeconfig")
		if vault.KindOf(err) != vault.Absent {
			t.Errorf("%s: %v", path, err)
		}
	}
	if seen := server.Seen(); len(seen) != 0 {
		t.Errorf("Vault was asked: %+v", seen)
	}
}

func TestOneLoginServesUntilFourFifthsOfItsLife(t *testing.T) {
	tests := map[string]struct {
		lease, before, after time.Duration
	}{
		"of a quarter of an hour": {15 * time.Minute, 12*time.Minute - time.Second, 12 * time.Minute},
		"of a day":                {24 * time.Hour, time.Hour - time.Second, time.Hour},
		"without an end":          {0, time.Hour - time.Second, time.Hour},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := withSecret(t)
			server.Lease(test.lease)
			o, start := options(server), time.Now()
			clock := clocktesting.NewFakePassiveClock(start)
			o.Clock = clock
			s := source(t, o)
			wantLogins := func(at time.Duration, want int) {
				t.Helper()
				clock.SetTime(start.Add(at))
				mustRead(t, s)
				if got := len(server.Logins()); got != want {
					t.Errorf("after %s: %d logins", at, got)
				}
			}
			wantLogins(0, 1)
			wantLogins(test.before, 1)
			wantLogins(test.after, 2)
		})
	}
}

func TestARevokedTokenIsReplacedOnce(t *testing.T) {
	server := withSecret(t)
	s := source(t, options(server))
	mustRead(t, s)
	server.Revoke()
	mustRead(t, s)
	if logins, reads := len(server.Logins()), len(server.Seen()); logins != 2 || reads != 3 {
		t.Errorf("%d logins, %d reads", logins, reads)
	}
	server.Deny(true)
	if _, _, err := s.Read(t.Context(), "users/alice/prod", "kubeconfig"); vault.KindOf(err) != vault.Denied {
		t.Errorf("got %v", err)
	}
	if logins, reads := len(server.Logins()), len(server.Seen()); logins != 3 || reads != 5 {
		t.Errorf("%d logins, %d reads", logins, reads)
	}
}

func TestATokenOfThisVeryReadIsntReplaced(t *testing.T) {
	server := withSecret(t)
	server.Deny(true)
	if _, _, err := source(t, options(server)).Read(t.Context(), "users/alice/prod", "kubeconfig"); vault.KindOf(err) != vault.Denied {
		t.Errorf("got %v", err)
	}
	if logins, reads := len(server.Logins()), len(server.Seen()); logins != 1 || reads != 1 {
		t.Errorf("%d logins, %d reads", logins, reads)
	}
}

func TestManyReadsAtOnceCauseOneLogin(t *testing.T) {
	server := withSecret(t)
	release, asked := make(chan struct{}), make(chan struct{}, 100)
	o := options(server)
	o.Token = func(context.Context) (secret.Value, error) {
		asked <- struct{}{}
		<-release
		return secret.New(vaulttest.JWT), nil
	}
	s := source(t, o)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, _, err := s.Read(t.Context(), "users/alice/prod", "kubeconfig"); err != nil {
				t.Error(err)
			}
		})
	}
	<-asked
	close(release)
	all.Wait()
	// One that came after the first login had ended finds its token.
	if got := len(server.Logins()); got != 1 {
		t.Errorf("%d logins", got)
	}
}

func TestFailuresAreSortedAndQuoteNothing(t *testing.T) {
	const canary = "canary-in-the-answer"
	canned := func(status int, body string) func(*vaulttest.Server, *vault.Options) {
		return func(s *vaulttest.Server, _ *vault.Options) {
			s.Answer(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
			})
		}
	}
	tests := map[string]struct {
		prepare func(*vaulttest.Server, *vault.Options)
		kind    vault.Kind
	}{
		"no such secret": {func(s *vaulttest.Server, _ *vault.Options) {}, vault.Absent},
		"a deleted version": {func(s *vaulttest.Server, _ *vault.Options) {
			s.Put("users/alice/x", map[string]any{"kubeconfig": canary})
			s.Delete("users/alice/x")
		}, vault.Absent},
		"no such key": {func(s *vaulttest.Server, _ *vault.Options) {
			s.Put("users/alice/x", map[string]any{"config": canary})
		}, vault.NoKey},
		"no text": {func(s *vaulttest.Server, _ *vault.Options) {
			s.Put("users/alice/x", map[string]any{"kubeconfig": map[string]any{"a": canary}})
		}, vault.NoKey},
		"an empty text": {func(s *vaulttest.Server, _ *vault.Options) {
			s.Put("users/alice/x", map[string]any{"kubeconfig": ""})
		}, vault.NoKey},
		"a policy that denies": {func(s *vaulttest.Server, _ *vault.Options) { s.Deny(true) }, vault.Denied},
		"a role that isn't there": {func(_ *vaulttest.Server, o *vault.Options) {
			o.Role = "another"
		}, vault.LoginRefused},
		"a token that isn't believed": {func(_ *vaulttest.Server, o *vault.Options) {
			o.Token = func(context.Context) (secret.Value, error) { return secret.New(canary), nil }
		}, vault.LoginRefused},
		"an auth method that isn't there": {func(_ *vaulttest.Server, o *vault.Options) { o.AuthMount = "none" }, vault.LoginRefused},
		"no token of the hub's": {func(_ *vaulttest.Server, o *vault.Options) {
			o.Token = func(context.Context) (secret.Value, error) { return secret.Value{}, errors.New("down") }
		}, vault.NoHubToken},
		"sealed":                   {func(s *vaulttest.Server, _ *vault.Options) { s.Seal(true) }, vault.Sealed},
		"too many requests":        {canned(429, `{"errors":["`+canary+`"]}`), vault.Sealed},
		"an error that isn't JSON": {canned(500, canary), vault.Sealed},
		"a page":                   {canned(200, "<html>"+canary), vault.Unexpected},
		"no data of version 2":     {canned(200, `{"auth":{"client_token":"`+canary+`","lease_duration":60},"data":{"kubeconfig":"`+canary+`"}}`), vault.Unexpected},
		"a login without a token":  {canned(200, `{"data":{"`+canary+`":1}}`), vault.Unexpected},
		"errors beside data":       {canned(200, `{"errors":["`+canary+`"],"x":1}`), vault.Unexpected},
		"over 1 MiB":               {canned(200, `{"data":{"a":"`+strings.Repeat(canary, 60_000)+`"}}`), vault.Unexpected},
		"an endless error": {func(s *vaulttest.Server, _ *vault.Options) {
			s.Answer(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				for r.Context().Err() == nil {
					_, _ = w.Write([]byte(strings.Repeat(canary, 1000)))
				}
			})
		}, vault.Unexpected},
		"what isn't HTTP": {func(s *vaulttest.Server, _ *vault.Options) {
			s.Answer(func(w http.ResponseWriter, _ *http.Request) {
				connection, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					_, _ = fmt.Fprintf(connection, "%s\r\n\r\n", canary)
					_ = connection.Close()
				}
			})
		}, vault.Unreachable},
		"another certificate": {func(_ *vaulttest.Server, o *vault.Options) { o.CA = nil }, vault.Unreachable},
		"nobody there": {func(_ *vaulttest.Server, o *vault.Options) {
			o.Dial = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
			}
		}, vault.Unreachable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := vaulttest.New(t)
			o := options(server)
			test.prepare(server, &o)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got, version, err := source(t, o).Read(ctx, "users/alice/x", "kubeconfig")
			if err == nil || vault.KindOf(err) != test.kind {
				t.Fatalf("got %v", err)
			}
			if !got.IsZero() || version != "" {
				t.Error("something came with the error")
			}
			if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "permission") || strings.Contains(err.Error(), vaulttest.JWT) || strings.Contains(err.Error(), "hvs.") {
				t.Errorf("the error quotes an answer: %v", err)
			}
		})
	}
}

func TestAReadEndsWithItsContext(t *testing.T) {
	server := withSecret(t)
	s := source(t, options(server))
	mustRead(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	server.Answer(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, _, err := s.Read(ctx, "users/alice/prod", "kubeconfig")
	if vault.KindOf(err) != vault.Unreachable || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var asked int
			elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
			defer elsewhere.Close()
			server := withSecret(t) // whose certificate is the same as elsewhere's
			s := source(t, options(server))
			mustRead(t, s)
			server.Answer(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL+"/v1/x", status)
			})
			_, _, err := s.Read(t.Context(), "users/alice/prod", "kubeconfig")
			if vault.KindOf(err) != vault.Unexpected || !strings.Contains(err.Error(), "redirect") {
				t.Errorf("got %v", err)
			}
			if asked != 0 {
				t.Error("the redirect was followed")
			}
		})
	}
}

// hostile is an environment in which each variable would change something.
func hostile() []string {
	return []string{
		"VAULT_ADDR=https://elsewhere.example.org:1", "VAULT_AGENT_ADDR=https://elsewhere.example.org:2",
		"VAULT_TOKEN=environments-token", "VAULT_NAMESPACE=environments", `VAULT_HEADERS={"X-Environment":"yes"}`,
		"VAULT_WRAP_TTL=60s", "VAULT_SKIP_VERIFY=true", "VAULT_TLS_SERVER_NAME=elsewhere.example.org",
		"VAULT_HTTP_PROXY=http://proxy.example.org:3128", "VAULT_PROXY_ADDR=http://proxy.example.org:3128",
		"HTTPS_PROXY=http://proxy.example.org:3128", "https_proxy=http://proxy.example.org:3128", "HTTP_PROXY=http://proxy.example.org:3128",
		"VAULT_RATE_LIMIT=0:0", "VAULT_MAX_RETRIES=5", "VAULT_CLIENT_TIMEOUT=1", "VAULT_SRV_LOOKUP=true", "NO_PROXY=", "no_proxy=",
	}
}

// The environment of proxies is read once in a process, so this needs its own.
func TestTheEnvironmentChangesNothing(t *testing.T) {
	const inside = "CUSTODY_TEST_INSIDE"
	if os.Getenv(inside) == "" {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheEnvironmentChangesNothing$", "-test.v")
		command.Env = append(append(os.Environ(), hostile()...), inside+"=1")
		if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	server := withSecret(t)
	o := options(server)
	var dialled []string
	o.Address = "https://example.com:8200" // no proxy is used for the loopback
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled = append(dialled, address)
		return (&net.Dialer{}).DialContext(ctx, network, server.Host())
	}
	s := source(t, o)
	mustRead(t, s)
	if want := []string{"example.com:8200"}; !cmp.Equal(dialled, want) {
		t.Errorf("connected to %v", dialled)
	}
	for _, r := range append(server.Logins(), server.Seen()...) {
		for _, header := range []string{"X-Vault-Namespace", "X-Environment", "X-Vault-Wrap-TTL"} {
			if r.Header.Get(header) != "" {
				t.Errorf("%s came with %s", r.Path, header)
			}
		}
		if r.Header.Get("X-Vault-Request") != "true" {
			t.Errorf("%s came without the header that keeps foreign requests out", r.Path)
		}
	}
	if got := server.Logins()[0].Header.Get("X-Vault-Token"); got != "" {
		t.Error("the login came with a token of the environment's")
	}
	o.CA = nil
	if _, _, err := source(t, o).Read(t.Context(), "users/alice/prod", "kubeconfig"); vault.KindOf(err) != vault.Unreachable {
		t.Errorf("a certificate that isn't trusted was taken: %v", err)
	}
}

func TestTheNamespaceGoesWithEachRequest(t *testing.T) {
	server := withSecret(t)
	o := options(server)
	o.Namespace = "platform/cellcast"
	mustRead(t, source(t, o))
	for _, r := range append(server.Logins(), server.Seen()...) {
		if r.Header.Get("X-Vault-Namespace") != "platform/cellcast" {
			t.Errorf("%s came without it", r.Path)
		}
	}
}

func TestNewRefusesWhatCantServe(t *testing.T) {
	server := vaulttest.New(t)
	tests := map[string]func(*vault.Options){
		"plain HTTP":                 func(o *vault.Options) { o.Address = "http://vault.example.com" },
		"a password in the address":  func(o *vault.Options) { o.Address = "https://a:canary@vault.example.com" },
		"a query in the address":     func(o *vault.Options) { o.Address = "https://vault.example.com?canary" },
		"no host":                    func(o *vault.Options) { o.Address = "https://" },
		"no certificates in the PEM": func(o *vault.Options) { o.CA = []byte("canary") },
		"no mount":                   func(o *vault.Options) { o.Mount = "" },
		"a mount that climbs":        func(o *vault.Options) { o.Mount = "kv/../sys" },
		"a mount with an escape":     func(o *vault.Options) { o.Mount = "kv%2Fcanary" },
		"an auth mount with a slash": func(o *vault.Options) { o.AuthMount = "kubernetes/" },
		"no role":                    func(o *vault.Options) { o.Role = "" },
		"no token":                   func(o *vault.Options) { o.Token = nil },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			o := options(server)
			change(&o)
			s, err := vault.New(o)
			if s != nil || err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a malformed variable of the environment", func(t *testing.T) {
		t.Setenv("VAULT_PROXY_ADDR", "http://user:canary@proxy\x7f")
		if _, err := vault.New(options(server)); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "VAULT_") {
			t.Errorf("got %v", err)
		}
	})
}
