package registration

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// maxBundle is how much PEM is read, in bytes: what fits into
// Cluster.spec.caBundle once it's encoded.
const maxBundle = 48 << 10

// certificates returns the certificates of a PEM bundle, encoded anew, so that
// nothing else which stood in the file goes into a row or a configuration. What
// is beside a certificate in a PEM file is usually its private key: any other
// block is refused.
func certificates(bundle []byte) ([]byte, error) {
	if len(bundle) == 0 {
		return nil, nil
	}
	if len(bundle) > maxBundle {
		return nil, fmt.Errorf("must be no more than %d bytes", maxBundle)
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

func about(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
