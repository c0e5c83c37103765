package peers

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cellcast.io/cellcast/pkg/secret"
	"cellcast.io/cellcast/test/issuer"
)

// door is a peer's direct door. Its certificate is for example.com and 127.0.0.1.
func door(t *testing.T, handler http.HandlerFunc) (*httptest.Server, []byte) {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	s.Config.ErrorLog = nil
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func client(roots []byte, change func(*ClientOptions)) Post {
	o := ClientOptions{
		Path:   "/relay/v1/batch",
		Token:  func(context.Context) (secret.Value, error) { return secret.New("the-token"), nil },
		Reject: func(secret.Value) {},
		Roots:  func() ([]byte, error) { return roots, nil },
	}
	if change != nil {
		change(&o)
	}
	return NewClient(o)
}

func TestClientPostsWithItsToken(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	got := ""
	s, roots := door(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body)}, " ")
		_, _ = io.WriteString(w, `{"instance":"there"}`)
	})
	for name, change := range map[string]func(*ClientOptions){
		"the host of the URL": nil,
		"a name that is set":  func(o *ClientOptions) { o.ServerName = "example.com" },
	} {
		t.Run(name, func(t *testing.T) {
			instance, err := client(roots, change)(t.Context(), s.URL, []byte("{}"))
			if err != nil || instance != "there" {
				t.Errorf("got %q, %v", instance, err)
			}
			if want := "POST /relay/v1/batch Bearer the-token application/json {}"; got != want {
				t.Errorf("it sent %q, want %q", got, want)
			}
		})
	}
}

func TestClientShowsItsTokenToNobodyElse(t *testing.T) {
	stranger, err := issuer.Start(issuer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	tests := map[string]struct {
		roots  func(own []byte) []byte
		change func(*ClientOptions)
		want   string
	}{
		"a certificate of another authority": {func([]byte) []byte { return stranger.CA() }, nil, "certificate signed by unknown authority"},
		"a certificate for another name": {nil, func(o *ClientOptions) { o.ServerName = "cellcast-hub.cellcast-system.svc" },
			"not cellcast-hub.cellcast-system.svc"},
		"no certificates to check by": {func([]byte) []byte { return nil }, nil, "there is no PEM certificate"},
		"certificates that can't be read": {nil, func(o *ClientOptions) {
			o.Roots = func() ([]byte, error) { return nil, errors.New("no such file") }
		}, "read the certificates of peers: no such file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, roots := door(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
			if tc.roots != nil {
				roots = tc.roots(roots)
			}
			_, err := client(roots, tc.change)(t.Context(), s.URL, []byte("{}"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestClientSaysWhatThePeerAnswered(t *testing.T) {
	tests := map[string]struct {
		answer   func(http.ResponseWriter, *http.Request)
		want     string
		rejected bool
	}{
		"401: the token is given up": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you", http.StatusUnauthorized) },
			`the peer answered 401 Unauthorized: "who are you\n"`, true},
		"a conflict": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "a replay", http.StatusConflict) },
			`the peer answered 409 Conflict: "a replay\n"`, false},
		"a redirect isn't followed": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
			"the peer answered 307 Temporary Redirect", false},
		"an answer of nobody": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
			"the peer's answer doesn't name its instance", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, roots := door(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					t.Error("it went elsewhere")
				}
				tc.answer(w, r)
			})
			rejected := false
			_, err := client(roots, func(o *ClientOptions) {
				o.Reject = func(v secret.Value) { rejected = v.Reveal() == "the-token" }
			})(t.Context(), s.URL, []byte("{}"))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "the-token") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if rejected != tc.rejected {
				t.Errorf("the token was rejected: %v", rejected)
			}
		})
	}
}
