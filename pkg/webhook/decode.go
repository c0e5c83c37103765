package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	strictjson "sigs.k8s.io/json"
)

// decode reads the new row strictly and the old one, if there is one, as far
// as it can be read.
//
// A field that this hub doesn't know, because the CRD is newer, is a field that
// it can't check: refused. The status is left out, for the hub alone writes it
// and a newer replica may have written more.
func decode[T any](req admission.Request) (row, old *T, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(req.Object.Raw, &members); err != nil {
		return nil, nil, fmt.Errorf("is no JSON object: %w", err)
	}
	delete(members, "status")
	known, err := json.Marshal(members)
	if err != nil {
		return nil, nil, fmt.Errorf("is no JSON object: %w", err)
	}
	row = new(T)
	strict, err := strictjson.UnmarshalStrict(known, row)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, nil, fmt.Errorf("this version of the hub can't read it, so it can't check it: %s", oneLine(err))
	}
	if len(req.OldObject.Raw) == 0 {
		return row, nil, nil
	}
	old = new(T)
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(req.OldObject.Raw, old); err != nil {
		return nil, nil, fmt.Errorf("this version of the hub can't read the stored row: %w", err)
	}
	return row, old, nil
}

// oneLine is the text of joined errors, which kubectl would break up.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
