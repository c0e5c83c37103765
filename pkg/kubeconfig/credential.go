package kubeconfig

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
)

const (
	maxCertificates = 32
	// maxRSABits is crypto/tls's most, which it holds servers' certificates to and not
	// the CAs that they are checked by: a key that fills 64 KiB takes 20 s a handshake.
	maxRSABits = 8192
	maxToken   = 16 << 10
)

var beginPEM = []byte("-----BEGIN ")

// checkCA refuses data that isn't certificates in PEM alone, with at least one of a
// CA among them. Go's reader passes over what it doesn't know; here nothing is.
func checkCA(data []byte) *Error {
	if len(data) > MaxBytes {
		return refuse(CAData, "the CA data is over 64 KiB")
	}
	hasCA := false
	rest, count := bytes.TrimSpace(data), 0
	for ; len(rest) > 0; count++ {
		if count == maxCertificates {
			return refuse(CAData, "the CA data has more than %d certificates", maxCertificates)
		}
		certificate, after, refused := nextCertificate(rest)
		if refused != nil {
			return refused
		}
		hasCA = hasCA || certificate.BasicConstraintsValid && certificate.IsCA
		rest = bytes.TrimSpace(after)
	}
	if !hasCA {
		return refuse(CAData, "the CA data has no certificate of a CA")
	}
	return nil
}

func nextCertificate(data []byte) (*x509.Certificate, []byte, *Error) {
	if !bytes.HasPrefix(data, beginPEM) {
		return nil, nil, refuse(CAData, "the CA data has something outside its PEM blocks")
	}
	block, rest := pem.Decode(data)
	// A block that is broken is passed over up to the next one.
	if block == nil || bytes.Count(data[:len(data)-len(rest)], beginPEM) != 1 {
		return nil, nil, refuse(CAData, "a PEM block of the CA data is broken")
	}
	if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
		return nil, nil, refuse(CAData, "a PEM block of the CA data isn't a plain certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil { // which can quote the certificate
		return nil, nil, refuse(CAData, "a certificate of the CA data can't be read")
	}
	if key, ok := certificate.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		return nil, nil, refuse(CAData, "a certificate of the CA data has an RSA key of more than %d bits", maxRSABits)
	}
	return certificate, rest, nil
}

// checkToken refuses what isn't a token by its form. What a token says is for its
// cluster to read: many aren't JWTs.
func checkToken(token string) *Error {
	switch {
	case token == "REDACTED": // kubectl config view's own word
		return refuseAsIs(Omitted)
	case token == "" || len(token) > maxToken || !isPrintable(token, '!'):
		return refuseAsIs(Token)
	}
	return nil
}
