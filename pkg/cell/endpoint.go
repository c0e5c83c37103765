package cell

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
)

// parseEndpoint takes an https URL with a host and, where a gateway serves many
// cells, a path: nothing else.
func parseEndpoint(text string) (*url.URL, error) {
	endpoint, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("is not a URL")
	case endpoint.Scheme != "https":
		return nil, errors.New("is not an https URL")
	case endpoint.Hostname() == "":
		return nil, errors.New("has no host")
	case endpoint.User != nil, endpoint.RawQuery != "", endpoint.ForceQuery, endpoint.Fragment != "":
		return nil, errors.New("has userinfo, a query or a fragment")
	}
	return endpoint, nil
}

// maxRSABits is crypto/tls's most for what a server shows. Those whom the hub trusts it
// doesn't bound, and a handshake takes 20 s by a key that fills a caBundle.
const maxRSABits = 8192

// ParseCABundle returns the certificates of a caBundle, or nil, which means the
// system's roots, for an empty one. Anything else in it is refused, also text
// between the certificates: a row must have no place for a key or a token. RSA keys
// have 8192 bits at most. No error quotes the bundle.
func ParseCABundle(bundle []byte) (*x509.CertPool, error) {
	rest := bytes.TrimSpace(bundle)
	if len(rest) == 0 {
		return nil, nil
	}
	roots := x509.NewCertPool()
	for i := 1; len(rest) > 0; i++ {
		if !bytes.HasPrefix(rest, []byte("-----BEGIN ")) {
			return nil, fmt.Errorf("what stands before entry %d isn't PEM", i)
		}
		block, after := pem.Decode(rest)
		if block == nil {
			return nil, fmt.Errorf("entry %d is not PEM", i)
		}
		// Decode skips what it can't read, so what it read must be at the front.
		if bytes.Count(rest[:len(rest)-len(after)], []byte("-----BEGIN ")) != 1 {
			return nil, fmt.Errorf("entry %d is not PEM", i)
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			return nil, fmt.Errorf("entry %d is not a certificate", i)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("entry %d is not a certificate that can be read", i)
		}
		if key, ok := certificate.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
			return nil, fmt.Errorf("entry %d has an RSA key of more than %d bits", i, maxRSABits)
		}
		roots.AddCert(certificate)
		rest = bytes.TrimSpace(after)
	}
	return roots, nil
}
