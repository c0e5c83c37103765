package registration

import (
	"fmt"

	pemcertificates "cellcast.io/cellcast/pkg/cli/certificates"
)

// maxBundle is how much PEM is read, in bytes: what fits into
// Cluster.spec.caBundle once it's encoded.
const maxBundle = 48 << 10

// certificates returns the certificates of a PEM bundle alone.
func certificates(bundle []byte) ([]byte, error) {
	if len(bundle) > maxBundle {
		return nil, fmt.Errorf("must be no more than %d bytes", maxBundle)
	}
	return pemcertificates.Encode(bundle)
}

func about(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
