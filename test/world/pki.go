package world

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLife is how long the world's certificates are good for: longer
// than any demo is left running, short enough to be worthless when forgotten.
const certificateLife = 30 * 24 * time.Hour

// authority is a certificate authority that lives in memory: its key is never
// written.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// pem is its certificate.
	pem []byte
}

// keyPair is a certificate and its key, as PEM.
type keyPair struct {
	cert, key []byte
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the authority %s: %w", name, err)
	}
	template := certificate(pkix.Name{CommonName: name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making the authority %s: %w", name, err)
	}
	return &authority{cert: cert, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// loopback is where servers listen that no pod has to reach.
const loopback = "127.0.0.1"

// serving issues a certificate for a server that is reached on loopback, and
// under the further names and addresses given.
func (a *authority) serving(names ...string) (keyPair, error) {
	template := certificate(pkix.Name{CommonName: "localhost"})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.ParseIP(loopback)}
	for _, name := range names {
		if address := net.ParseIP(name); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return a.issue(template)
}

// client issues a certificate that Kubernetes reads as this user in these
// groups.
func (a *authority) client(user string, groups ...string) (keyPair, error) {
	template := certificate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing a certificate for %s: %w", template.Subject.CommonName, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing a certificate for %s: %w", template.Subject.CommonName, err)
	}
	private, err := privatePEM(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{cert: encode("CERTIFICATE", der), key: private}, nil
}

func certificate(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // crypto/rand never fails
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certificateLife),
	}
}

// signingKey makes a key that signs ServiceAccount tokens: RSA, as nearly all
// clusters have.
func signingKey() ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("making a ServiceAccount key: %w", err)
	}
	return privatePEM(key)
}

func privatePEM(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return encode("PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// write puts the pair into name.crt and name.key under dir.
func (k keyPair) write(dir, name string) (cert, key string, err error) {
	if cert, err = writeFile(dir, name+".crt", k.cert); err != nil {
		return "", "", err
	}
	key, err = writeFile(dir, name+".key", k.key)
	return cert, key, err
}

// writeFile writes a file that only its owner can read and returns its path.
func writeFile(dir, name string, content []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, content, 0o600)
}
