package cluster

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// certificates admits PEM certificates and white space, and nothing before,
// between or after them. A PEM parser alone would skip what it doesn't know,
// and anything could be kept there.
func certificates(bundle []byte, path *field.Path) field.ErrorList {
	if len(bundle) == 0 {
		return nil
	}
	n := 0
	for rest := bytes.TrimSpace(bundle); len(rest) > 0 || n == 0; n++ {
		block, after := pem.Decode(rest)
		if block == nil || !isWhole(rest[:len(rest)-len(after)]) {
			return field.ErrorList{invalid(path, "must be PEM certificates and nothing else; after %d of them comes something else", n)}
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			return field.ErrorList{invalid(path, "must be PEM certificates without headers; block %d is something else", n+1)}
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return field.ErrorList{invalid(path, "certificate %d is not a valid X.509 certificate", n+1)}
		}
		rest = bytes.TrimSpace(after)
	}
	return nil
}

// isWhole says that the parser skipped nothing to get at its block.
func isWhole(consumed []byte) bool {
	begin := []byte("-----BEGIN ")
	return bytes.HasPrefix(consumed, begin) && bytes.Count(consumed, begin) == 1
}
