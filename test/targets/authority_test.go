package targets

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// apiName is a name that the certificates of an authority are good for, beside
// addresses of loopback.
const apiName = "api.acme.example"

// authority signs the certificates of a test's own servers.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test target CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key))(t)
	a.certificate = must(x509.ParseCertificate(der))(t)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

// serve starts a TLS server at an address of loopback.
func (a *authority) serve(t *testing.T, address string, handler http.Handler) *httptest.Server {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test target"},
		NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{apiName},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key))(t)
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener = must(net.Listen("tcp", address))(t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// witness counts the connections to a listener of its own, and answers nothing
// until the test ends.
type witness struct {
	address string
	came    atomic.Int64
}

func newWitness(t *testing.T, address string) *witness {
	t.Helper()
	listener := must(net.Listen("tcp", address))(t)
	w := &witness{address: listener.Addr().String()}
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range open {
			_ = conn.Close()
		}
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.came.Add(1)
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
		}
	}()
	return w
}

// none fails the test where somebody came.
func (w *witness) none(t *testing.T, what string) {
	t.Helper()
	if n := w.came.Load(); n != 0 {
		t.Errorf("%s: %d connections were made", what, n)
	}
}
