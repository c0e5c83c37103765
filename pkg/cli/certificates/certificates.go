// Package certificates takes the certificates out of a PEM file, and nothing else.
package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// Encode returns the certificates of a PEM bundle, encoded anew, so that nothing
// else which stood in the file goes into a row or a configuration. What is beside
// a certificate in a PEM file is usually its private key: any other block is
// refused. Of an empty bundle it returns none.
func Encode(bundle []byte) ([]byte, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("must hold PEM certificates and nothing else")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, errors.New("holds a PEM block that is no X.509 certificate")
		}
		if err := pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return nil, err
		}
	}
	if out.Len() == 0 {
		return nil, errors.New("holds no PEM certificate")
	}
	return out.Bytes(), nil
}
