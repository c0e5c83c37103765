package stanza

import (
	"errors"
	"fmt"

	pemcertificates "cellcast.io/cellcast/pkg/cli/certificates"
)

// maxCA is how much PEM is taken, in bytes; a bundle of public roots has more,
// and is no authority to name for one issuer.
const maxCA = 48 << 10

// certificates returns the certificates of the file of --ca alone.
func certificates(bundle []byte) ([]byte, error) {
	if len(bundle) > maxCA {
		return nil, errors.New("the file of --ca is longer than 48 KiB: give the issuer's own CA alone")
	}
	encoded, err := pemcertificates.Encode(bundle)
	if err != nil {
		return nil, fmt.Errorf("the file of --ca %w", err)
	}
	return encoded, nil
}
