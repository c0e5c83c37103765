package keyset

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A brought target's API can be in anyone's hands.
func TestDocumentIsBounded(t *testing.T) {
	var followed bool
	// In the texts, $ stands for the server's URL.
	tests := map[string]struct {
		serve http.HandlerFunc
		want  string // the document, cut at 20 bytes
		err   string
	}{
		"reads the document": {
			serve: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) },
			want:  `{"keys":[]}`},
		"follows no redirect, where the credential would go with it": {
			serve: func(w http.ResponseWriter, r *http.Request) {
				followed = followed || r.URL.Path != "/openid/v1/jwks"
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
			},
			err: "$/openid/v1/jwks answered 302 Found"},
		"quotes no text that comes with the status": {
			serve: func(w http.ResponseWriter, _ *http.Request) {
				conn, out, err := w.(http.Hijacker).Hijack()
				if err != nil {
					return
				}
				defer conn.Close()
				fmt.Fprint(out, "HTTP/1.1 403 s3cret\r\nContent-Length: 0\r\n\r\n")
				out.Flush()
			},
			err: "$/openid/v1/jwks answered 403 Forbidden"},
		"stops reading one that says it has 1 GB": {
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000000000")
				spaces(w)
			},
			err: "$/openid/v1/jwks answered more than 1048576 bytes"},
		"stops reading one that never ends": {
			serve: func(w http.ResponseWriter, _ *http.Request) { spaces(w) },
			err:   "$/openid/v1/jwks answered more than 1048576 bytes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(tc.serve)
			defer server.Close()
			got, err := Document(server.Client(), server.URL+"/openid/v1/jwks")(t.Context())
			text := ""
			if err != nil {
				text = strings.ReplaceAll(err.Error(), server.URL, "$")
			}
			if string(got) != tc.want || text != tc.err {
				t.Errorf("got %.20q and %q, want %q and %q", got, text, tc.want, tc.err)
			}
		})
	}
	if followed {
		t.Error("the redirect was followed")
	}
}

func TestDocumentThatDripsEndsWithTheContext(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Document(server.Client(), server.URL)(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestDocumentIsReadOverHTTPSAlone(t *testing.T) {
	const want = `"http://127.0.0.1:1/openid/v1/jwks": the URL must be https, with a host and without userinfo`
	if _, err := Document(http.DefaultClient, "http://127.0.0.1:1/openid/v1/jwks")(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDocumentOfTenThousandKeysIsRefused(t *testing.T) {
	key := jwk(t, newKey(t, "k").public())
	document := `{"keys":[` + strings.TrimSuffix(strings.Repeat(`{"kty":"EC"},`, 10_000), ",") + `,` + key + `]}`
	if keys, err := Parse([]byte(document)); err == nil || err.Error() != "the key set has 10001 keys, more than 64" {
		t.Errorf("got %d keys and error %v", len(keys), err)
	}
}

func TestIssuer(t *testing.T) {
	tests := map[string]struct{ document, want, err string }{
		"is what the document says": {`{"issuer":"https://kubernetes.default.svc","jwks_uri":"https://10.0.0.1/openid/v1/jwks"}`, "https://kubernetes.default.svc", ""},
		"is refused where there is none": {`{"jwks_uri":"https://10.0.0.1/openid/v1/jwks"}`, "",
			"the discovery document names no issuer"},
		"is refused where two are given": {`{"issuer":"https://a","issuer":"https://b"}`, "",
			"read the discovery document: it's not JSON that can be read: json: duplicate key 'issuer' in object"},
		"is refused over 1 MiB": {`{"issuer":"https://a"}` + strings.Repeat(" ", MaxDocument), "",
			"the discovery document has more than 1048576 bytes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Issuer([]byte(tc.document))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != tc.want || text != tc.err {
				t.Errorf("got %q and %q, want %q and %q", got, text, tc.want, tc.err)
			}
		})
	}
}

// spaces writes until nobody reads any more.
func spaces(w http.ResponseWriter) {
	block := []byte(strings.Repeat(" ", 64<<10))
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}
