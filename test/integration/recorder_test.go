package integration

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// recorder is a proxy in front of the direct door that terminates TLS, as a
// load balancer does, and keeps every answer that passes.
type recorder struct {
	server *httptest.Server

	mu      sync.Mutex
	answers bytes.Buffer
}

// record starts a recorder with the hub's own certificate. To the hub it shows
// the client certificate, where there is one.
func record(t *testing.T, client ...tls.Certificate) *recorder {
	t.Helper()
	target, err := url.Parse(hub.Hub.Server.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(hub.Hub.ServerCABundle)
	r := &recorder{}
	r.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			// ReverseProxy drops none of the headers by which a front proxy speaks.
			p.Out.Header = p.In.Header.Clone()
		},
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: client}},
		ModifyResponse: func(response *http.Response) error {
			body, err := io.ReadAll(response.Body)
			if err != nil {
				return err
			}
			response.Body = io.NopCloser(bytes.NewReader(body))
			r.mu.Lock()
			defer r.mu.Unlock()
			r.answers.Write(body)
			return nil
		},
	})
	serving := pair(t, "cellcast-hub")
	r.server.TLS = &tls.Config{Certificates: []tls.Certificate{serving}}
	r.server.StartTLS()
	t.Cleanup(r.server.Close)
	return r
}

// pair is a certificate of the hub's with its key.
func pair(t *testing.T, name string) tls.Certificate {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(hub.Dir, "*", name+".crt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the certificate %s is in %v: %v", name, files, err)
	}
	cert, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(files[0][:len(files[0])-len(".crt")] + ".key")
	if err != nil {
		t.Fatal(err)
	}
	out, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// port is where it listens on the loopback.
func (r *recorder) port() int { return r.server.Listener.Addr().(*net.TCPAddr).Port }

// url is how a client reaches it, by a name that is in the hub's certificate.
func (r *recorder) url() string { return "https://localhost:" + strconv.Itoa(r.port()) }

// recorded is all that passed.
func (r *recorder) recorded() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers.String()
}
