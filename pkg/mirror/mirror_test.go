package mirror_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/mirror"
)

// What a hub's API server answers, as kube-apiserver 1.37 does.
const (
	hubDiscovery = `{"issuer":"https://hub.internal","jwks_uri":"https://10.0.0.1:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["RS256"]}`
	hubKeys      = `{"keys":[{"use":"sig","kty":"RSA","kid":"k1","alg":"RS256","n":"sXch","e":"AQAB"},{"kty":"EC","kid":"k2","crv":"P-256","x":"MKBC","y":"4Etl"}]}`
)

// hubAPI is the hub's API server.
type hubAPI struct {
	mu    sync.Mutex
	docs  map[string]string
	err   error
	took  time.Duration
	calls []string
}

func newHubAPI() *hubAPI {
	return &hubAPI{docs: map[string]string{mirror.DiscoveryPath: hubDiscovery, mirror.KeysPath: hubKeys}}
}

func (h *hubAPI) Get(ctx context.Context, path string) ([]byte, error) {
	h.mu.Lock()
	h.calls = append(h.calls, path)
	doc, err, took := h.docs[path], h.err, h.took
	h.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(took):
		return []byte(doc), err
	}
}

func newMirror(t *testing.T, hub *hubAPI) *mirror.Mirror {
	t.Helper()
	m, err := mirror.New(hub, mirror.Options{ExternalURL: "https://hub.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(ctx context.Context, m http.Handler, method, path string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	m.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, method, path, nil))
	return recorder
}

func TestMirrorServesTwoDocumentsAndNothingElse(t *testing.T) {
	const (
		discovery = `{"issuer":"https://hub.internal","jwks_uri":"https://hub.example.com/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["RS256"]}`
		keys      = `{"keys":[{"kty":"RSA","kid":"k1","use":"sig","alg":"RS256","n":"sXch","e":"AQAB"},{"kty":"EC","kid":"k2","crv":"P-256","x":"MKBC","y":"4Etl"}]}`
		missing   = "not found\n"
		method    = "only GET and HEAD are served here\n"
	)
	for sentence, tt := range map[string]struct {
		method, path string
		code         int
		contentType  string
		body         string
	}{
		"the discovery document":             {"GET", "/.well-known/openid-configuration", 200, "application/json", discovery},
		"the discovery document, head alone": {"HEAD", "/.well-known/openid-configuration", 200, "application/json", ""},
		"the key set":                        {"GET", "/openid/v1/jwks", 200, "application/jwk-set+json", keys},
		"the key set, head alone":            {"HEAD", "/openid/v1/jwks", 200, "application/jwk-set+json", ""},
		"a query changes nothing":            {"GET", "/openid/v1/jwks?issuer=https://evil.example", 200, "application/jwk-set+json", keys},
		"the root":                           {"GET", "/", 404, "text/plain; charset=utf-8", missing},
		"a slash too many":                   {"GET", "/openid/v1/jwks/", 404, "text/plain; charset=utf-8", missing},
		"a doubled slash":                    {"GET", "//openid/v1/jwks", 404, "text/plain; charset=utf-8", missing},
		"dots":                               {"GET", "/openid/v1/../v1/jwks", 404, "text/plain; charset=utf-8", missing},
		"another API of the hub":             {"GET", "/api/v1/secrets", 404, "text/plain; charset=utf-8", missing},
		"POST":                               {"POST", "/openid/v1/jwks", 405, "text/plain; charset=utf-8", method},
		"OPTIONS":                            {"OPTIONS", "/.well-known/openid-configuration", 405, "text/plain; charset=utf-8", method},
		"POST elsewhere":                     {"POST", "/api/v1/secrets", 404, "text/plain; charset=utf-8", missing},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := ask(t.Context(), newMirror(t, newHubAPI()), tt.method, tt.path)
			if got.Code != tt.code || got.Header().Get("Content-Type") != tt.contentType {
				t.Errorf("got %d %s, want %d %s", got.Code, got.Header().Get("Content-Type"), tt.code, tt.contentType)
			}
			if diff := cmp.Diff(tt.body, got.Body.String()); diff != "" {
				t.Errorf("the body differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryAnswerHasItsHeaders(t *testing.T) {
	protecting := http.Header{
		"Content-Security-Policy":   {"default-src 'none'; frame-ancestors 'none'"},
		"Referrer-Policy":           {"no-referrer"},
		"Strict-Transport-Security": {"max-age=31536000"},
		"X-Content-Type-Options":    {"nosniff"},
	}
	away := newHubAPI()
	away.err = errors.New("connection refused")
	for sentence, tt := range map[string]struct {
		hub          *hubAPI
		method, path string
		also         http.Header
	}{
		"a document":         {newHubAPI(), "GET", mirror.KeysPath, http.Header{"Content-Type": {"application/jwk-set+json"}, "Cache-Control": {"public, max-age=5"}, "Content-Length": {"143"}}},
		"the head of one":    {newHubAPI(), "HEAD", mirror.KeysPath, http.Header{"Content-Type": {"application/jwk-set+json"}, "Cache-Control": {"public, max-age=5"}, "Content-Length": {"143"}}},
		"another path":       {newHubAPI(), "GET", "/", http.Header{"Content-Type": {"text/plain; charset=utf-8"}}},
		"another method":     {newHubAPI(), "PUT", mirror.KeysPath, http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Allow": {"GET, HEAD"}}},
		"a hub that is away": {away, "GET", mirror.KeysPath, http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "Retry-After": {"5"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			want := protecting.Clone()
			for name, values := range tt.also {
				want[name] = values
			}
			if diff := cmp.Diff(want, ask(t.Context(), newMirror(t, tt.hub), tt.method, tt.path).Header()); diff != "" {
				t.Errorf("headers differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheHostHeaderDecidesNothing(t *testing.T) {
	m := newMirror(t, newHubAPI())
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://evil.example"+mirror.DiscoveryPath, nil)
	request.Header.Set("X-Forwarded-Host", "evil.example")
	got, want := httptest.NewRecorder(), ask(t.Context(), m, http.MethodGet, mirror.DiscoveryPath)
	m.ServeHTTP(got, request)
	if diff := cmp.Diff(want.Body.String(), got.Body.String()); diff != "" {
		t.Errorf("another host got another document:\n%s", diff)
	}
}

func TestTheExternalURLMayHaveAPath(t *testing.T) {
	m, err := mirror.New(newHubAPI(), mirror.Options{ExternalURL: "https://example.com/cellcast/"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"issuer":"https://hub.internal","jwks_uri":"https://example.com/cellcast/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["RS256"]}`
	if diff := cmp.Diff(want, ask(t.Context(), m, "GET", mirror.DiscoveryPath).Body.String()); diff != "" {
		t.Errorf("the document differs (-want +got):\n%s", diff)
	}
}

func TestNewRefusesAnExternalURLThatCellsCantUse(t *testing.T) {
	const (
		https = "the external URL must be an https URL with a host, such as https://hub.example.com"
		bare  = "the external URL must have no userinfo, query or fragment"
	)
	for external, want := range map[string]string{
		"":                              https,
		"hub.example.com":               https,
		"http://hub.example.com":        https,
		"https://":                      https,
		"https://:443":                  https,
		"https://me:pw@hub.example.com": bare,
		"https://hub.example.com?":      bare,
		"https://hub.example.com#x":     bare,
	} {
		t.Run(external, func(t *testing.T) {
			if _, err := mirror.New(newHubAPI(), mirror.Options{ExternalURL: external}); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestAFloodCostsTheHubOneRequestPerFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := newHubAPI()
		hub.took = time.Second
		m := newMirror(t, hub)
		flood := func() {
			var clients sync.WaitGroup
			for range 100 {
				clients.Go(func() {
					if got := ask(t.Context(), m, "GET", mirror.KeysPath); got.Code != 200 {
						t.Errorf("got %d", got.Code)
					}
				})
			}
			clients.Wait()
		}
		flood()
		flood()
		time.Sleep(5*time.Second - time.Millisecond)
		flood()
		if n := len(hub.calls); n != 1 {
			t.Errorf("%d requests within five seconds, want 1", n)
		}
		time.Sleep(time.Millisecond)
		flood()
		if n := len(hub.calls); n != 2 {
			t.Errorf("%d requests after five seconds, want 2", n)
		}
	})
}

func TestARotatedKeyIsServedWithinFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := newHubAPI()
		m := newMirror(t, hub)
		ask(t.Context(), m, "GET", mirror.KeysPath)
		hub.docs[mirror.KeysPath] = `{"keys":[{"kty":"EC","kid":"new"}]}`
		time.Sleep(5 * time.Second)
		if got := ask(t.Context(), m, "GET", mirror.KeysPath).Body.String(); got != `{"keys":[{"kty":"EC","kid":"new"}]}` {
			t.Errorf("got %s", got)
		}
	})
}

func TestWhileTheHubIsAwayTheAnswerIs503AndItIsAskedOncePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := newHubAPI()
		hub.err = errors.New("dial tcp 10.0.0.1:6443: connection refused")
		m := newMirror(t, hub)
		for range 10 {
			got := ask(t.Context(), m, "GET", mirror.KeysPath)
			if got.Code != 503 || got.Body.String() != "the hub's API server doesn't give this document now\n" {
				t.Errorf("got %d %q", got.Code, got.Body)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := len(hub.calls); n != 1 {
			t.Errorf("%d requests within a second, want 1", n)
		}
		hub.err = nil
		if got := ask(t.Context(), m, "GET", mirror.KeysPath); got.Code != 200 {
			t.Errorf("once it's back: %d", got.Code)
		}
	})
}

func TestAHubThatDoesntAnswerIsGivenFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := newHubAPI()
		hub.took = time.Hour
		began := time.Now()
		if got := ask(t.Context(), newMirror(t, hub), "GET", mirror.KeysPath); got.Code != 503 {
			t.Errorf("got %d", got.Code)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestAClientThatGoesAwayDoesntEndTheRequestOthersWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := newHubAPI()
		hub.took = time.Second
		m := newMirror(t, hub)
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		ask(hasty, m, "GET", mirror.KeysPath)
		if got := ask(t.Context(), m, "GET", mirror.KeysPath); got.Code != 200 || len(hub.calls) != 1 {
			t.Errorf("got %d after %d requests", got.Code, len(hub.calls))
		}
	})
}
