package hub

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	testingclock "k8s.io/utils/clock/testing"
)

// authority is a certificate authority of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (a *authority) issue(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		a.key = private
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func TestPeersAreCheckedByTheSharedCertificate(t *testing.T) {
	const name = "cellcast-hub.cellcast-system.svc"
	ca := &authority{}
	caCert, _ := ca.issue(t, "ca")
	cert, key := ca.issue(t, name)
	sibling, _ := ca.issue(t, name)
	content, err := dynamiccertificates.NewStaticCertKeyContent("serving", append(cert, caCert...), key)
	if err != nil {
		t.Fatal(err)
	}
	c := NewConfig(DefaultSettings())
	c.Generic.SecureServing = &genericapiserver.SecureServingInfo{Cert: content}
	verify := func(of []byte) error {
		roots, err := c.peerRoots()
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(roots)
		block, _ := pem.Decode(of)
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: c.peerServerName()})
		return err
	}
	if err := verify(cert); err != nil {
		t.Errorf("a replica with the same certificate is refused: %v", err)
	}
	if verify(sibling) == nil {
		t.Error("another certificate of the same authority is taken, though nobody named the authority")
	}
	c.PeerCAFile = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(c.PeerCAFile, caCert, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := verify(sibling); err != nil {
		t.Errorf("with --peer-ca-file: %v", err)
	}
}

func TestNameOfPeers(t *testing.T) {
	tests := map[string]struct {
		settings Settings
		want     string
	}{
		"the Service's":                      {Settings{Namespace: "a", PeerService: "hub"}, "hub.a.svc"},
		"the one that is set":                {Settings{Namespace: "a", PeerService: "hub", PeerServerName: "x"}, "x"},
		"the host's, where peers are listed": {Settings{Namespace: "a", PeerService: "hub", Peers: []string{"https://h:1"}}, ""},
		"the one that is set for those too":  {Settings{Peers: []string{"https://h:1"}, PeerServerName: "x"}, "x"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := NewConfig(tc.settings).peerServerName(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestIssuerIsAskedSeldomWhileItsAway(t *testing.T) {
	away, asked := errors.New("away"), 0
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	answers := []error{away, away, nil, nil}
	s := &seldom{pause: 5 * time.Second, clock: clock, ask: func(context.Context) (string, error) {
		asked++
		return "https://hub", answers[asked-1]
	}}
	var got []int
	for _, step := range []time.Duration{0, 4 * time.Second, time.Second, time.Second, 4 * time.Second, 0} {
		clock.Step(step)
		issuer, err := s.get(t.Context())
		if (err == nil) != (asked >= 3) || (err == nil && issuer != "https://hub") {
			t.Errorf("after %d questions: %q, %v", asked, issuer, err)
		}
		got = append(got, asked)
	}
	if diff := cmp.Diff([]int{1, 1, 2, 2, 3, 4}, got); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}
