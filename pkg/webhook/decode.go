package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	strictjson "sigs.k8s.io/json"
)

// declared is the object without its status. The API server takes none of it from
// whoever sends a row; what stands there is the hub's own, and a newer replica may
// have written more than this one knows.
func declared(object []byte) []byte {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil || members["status"] == nil {
		return object
	}
	delete(members, "status")
	rest, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return rest
}

// decode reads the new row strictly and the old one, if there is one, as far
// as it can be read.
//
// A field that this hub doesn't know, because the CRD is newer, is a field that
// it can't check: refused.
func decode[T any](object, stored []byte) (row, old *T, err error) {
	row = new(T)
	strict, err := strictjson.UnmarshalStrict(object, row)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, nil, fmt.Errorf("this version of the hub can't read it, so it can't check it: %s", oneLine(err))
	}
	if len(stored) == 0 {
		return row, nil, nil
	}
	old = new(T)
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(stored, old); err != nil {
		return nil, nil, fmt.Errorf("this version of the hub can't read the stored row: %w", err)
	}
	return row, old, nil
}

// oneLine is the text of joined errors, which kubectl would break up.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
