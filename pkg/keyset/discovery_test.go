package keyset

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cellcast.io/cellcast/test/issuer"
)

func TestDiscovery(t *testing.T) {
	const keys = `{"keys":[]}`
	document := func(iss, jwks string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, iss, jwks) }
	}
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s) }
	}
	plain := httptest.NewServer(text(keys))
	defer plain.Close()

	// In addresses and handlers, $ stands for the server's URL.
	type pages map[string]func(url string) http.HandlerFunc
	good := func(url string) http.HandlerFunc { return document(url, url+"/jwks") }
	served := func(string) http.HandlerFunc { return text(keys) }
	redirect := func(to string) func(string) http.HandlerFunc {
		return func(url string) http.HandlerFunc {
			return http.RedirectHandler(strings.ReplaceAll(to, "$", url), http.StatusFound).ServeHTTP
		}
	}
	tests := map[string]struct {
		pages     pages
		issuer    string // "$" where empty
		discovery string
		err       string // "" for success; $ as above
	}{
		"reads the document below the issuer and the keys that it names": {
			pages: pages{"/.well-known/openid-configuration": good, "/jwks": served}},
		"keeps an issuer's last slash": {
			issuer: "$/",
			pages: pages{"/.well-known/openid-configuration": func(url string) http.HandlerFunc { return document(url+"/", url+"/jwks") },
				"/jwks": served}},
		"reads the document from the discovery URL": {
			issuer: "https://ci.example.com", discovery: "$/mirror",
			pages: pages{"/mirror": func(url string) http.HandlerFunc { return document("https://ci.example.com", url+"/jwks") },
				"/jwks": served}},
		"follows a redirect to https": {
			pages: pages{"/.well-known/openid-configuration": good, "/jwks": redirect("$/keys"), "/keys": served}},
		"refuses a redirect to http": {
			pages: pages{"/.well-known/openid-configuration": good, "/jwks": redirect(plain.URL)},
			err:   `read the key set: Get "` + plain.URL + `": the URL must be https, with a host and without userinfo`},
		"refuses a fourth redirect": {
			pages: pages{"/.well-known/openid-configuration": good, "/jwks": redirect("$/jwks")},
			err:   `read the key set: Get "$/jwks": more than 3 redirects`},
		"refuses keys over http": {
			pages: pages{"/.well-known/openid-configuration": func(url string) http.HandlerFunc { return document(url, plain.URL) }},
			err:   `read the key set: "` + plain.URL + `": the URL must be https, with a host and without userinfo`},
		"refuses a document without keys": {
			pages: pages{"/.well-known/openid-configuration": func(url string) http.HandlerFunc { return document(url, "") }},
			err:   `read the key set: "": the URL must be https, with a host and without userinfo`},
		"refuses another issuer's document": {
			pages: pages{"/.well-known/openid-configuration": func(url string) http.HandlerFunc { return document(url+"/", url) }},
			err:   `the discovery document is of issuer "$/", not of "$"`},
		"refuses a document that isn't JSON": {
			pages: pages{"/.well-known/openid-configuration": func(string) http.HandlerFunc { return text("<html>") }},
			err:   "read the discovery document: it's not JSON that can be read: invalid character '<' looking for beginning of value"},
		"refuses another status than 200": {
			pages: pages{},
			err:   "read the discovery document: $/.well-known/openid-configuration answered 404 Not Found"},
		"refuses more than 1 MiB": {
			pages: pages{"/.well-known/openid-configuration": good, "/jwks": func(string) http.HandlerFunc { return text(strings.Repeat(" ", MaxDocument+1)) }},
			err:   "read the key set: $/jwks answered more than 1048576 bytes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			server := httptest.NewTLSServer(mux)
			defer server.Close()
			for path, page := range tc.pages {
				mux.HandleFunc(path, page(server.URL))
			}
			here := func(s string) string { return strings.ReplaceAll(s, "$", server.URL) }
			if tc.issuer == "" {
				tc.issuer = "$"
			}
			client, err := Client(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Discovery(client, here(tc.issuer), here(tc.discovery))(t.Context())
			if tc.err == "" {
				if err != nil || string(got) != keys {
					t.Errorf("got %s, %v", got, err)
				}
				return
			}
			if err == nil || err.Error() != here(tc.err) {
				t.Errorf("got error\n%v, want\n%s", err, here(tc.err))
			}
		})
	}
}

func TestClientTrustsItsBundleAlone(t *testing.T) {
	server, err := issuer.Start(issuer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Discovery(client, server.URL(), "")(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("with the system's roots: got %v", err)
	}
	if _, err := Client([]byte("nothing")); err == nil || err.Error() != "the CA bundle holds no PEM certificate" {
		t.Errorf("with a bundle of nothing: got %v", err)
	}
}

// An issuer as it is met: rotating behind cache headers of a week.
func TestNewKeysAreFoundDespiteCacheHeaders(t *testing.T) {
	server, err := issuer.Start(issuer.Options{CacheControl: "public, max-age=604800, immutable"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := Client(server.CA())
	if err != nil {
		t.Fatal(err)
	}
	s := New(Discovery(client, server.URL(), ""), Options{Cooldown: time.Nanosecond})
	check := func(how issuer.Signing) {
		t.Helper()
		token, err := server.Sign(nil, how)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.VerifySignature(t.Context(), token); err != nil {
			t.Error(err)
		}
	}
	check(issuer.Signing{})
	if err := server.Rotate(false); err != nil {
		t.Fatal(err)
	}
	check(issuer.Signing{})
	check(issuer.Signing{Alg: issuer.ES256})
	check(issuer.Signing{Key: issuer.Previous})
	if got, want := server.Fetches(), (issuer.Fetches{Discovery: 2, Keys: 2}); got != want {
		t.Errorf("fetches %+v, want %+v", got, want)
	}
}
