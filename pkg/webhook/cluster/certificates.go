package cluster

import (
	"bytes"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"cellcast.io/cellcast/pkg/cell"
)

// certificates admits what the hub's client of the cell takes: PEM certificates and
// white space, and nothing before, between or after them, where anything could be
// kept.
func certificates(bundle []byte, path *field.Path) field.ErrorList {
	if len(bundle) == 0 {
		return nil
	}
	if len(bytes.TrimSpace(bundle)) == 0 {
		return field.ErrorList{invalid(path, "must be PEM certificates and nothing else; leave it out to use the system's roots")}
	}
	if _, err := cell.ParseCABundle(bundle); err != nil {
		return field.ErrorList{invalid(path, "must be PEM certificates and nothing else: %s", err)}
	}
	return nil
}
