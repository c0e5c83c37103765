package stanza

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// maxCA is how much PEM is taken, in bytes; a bundle of public roots has more,
// and is no authority to name for one issuer.
const maxCA = 48 << 10

// certificates returns the certificates, encoded anew, so that nothing else
// which stood in the file gets into a configuration: what is beside a
// certificate in a PEM file is usually its private key.
func certificates(bundle []byte) ([]byte, error) {
	if len(bundle) > maxCA {
		return nil, errors.New("the file of --ca is longer than 48 KiB: give the issuer's own CA alone")
	}
	var out bytes.Buffer
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("the file of --ca must hold PEM certificates and nothing else")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, errors.New("the file of --ca holds a PEM block that is no X.509 certificate")
		}
		if err := pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return nil, err
		}
	}
	if len(bundle) > 0 && out.Len() == 0 {
		return nil, errors.New("the file of --ca holds no PEM certificate")
	}
	return out.Bytes(), nil
}
