// Package webhook is what the admission handlers of every kind have in common.
// Before a row's own rules are looked at, it is searched for credentials as it
// was sent, but for the status, which the hub alone writes: cellcast keeps none,
// and a row is kept. No answer quotes one.
package webhook

import (
	"context"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"cellcast.io/cellcast/pkg/webhook/credential"
)

// Validator knows the rules of one kind that need more than its schema.
type Validator[T any] interface {
	// Validate returns what is wrong with the row, and warnings about what is
	// allowed and unwise. old is nil for a new row. It is called only for rows
	// that hold no credential. The error is a fault of the hub's.
	Validate(ctx context.Context, req Request, row, old *T) (field.ErrorList, []string, error)
}

// Request is how a row was sent.
type Request struct {
	// User is who sent it. The API server says so, and nothing proves to the hub
	// that it was the API server: an answer may depend on the user, and nothing
	// else may.
	User authenticationv1.UserInfo
	// DryRun says that the row won't be stored.
	DryRun bool
}

// Auditor is told of each row that was refused because it held a credential, and
// of each Secret whose kubeconfig was.
type Auditor interface {
	CredentialRefused(CredentialRefusal)
}

// CredentialRefusal says whose row was refused and where it held a credential.
type CredentialRefusal struct {
	// RequestID is the UID of the admission request.
	RequestID string
	// User is who sent the row.
	User string
	// Kind and Name are the row's. Name is empty where it was the credential.
	Kind, Name string
	// Fields are paths, never values.
	Fields []string
}

// NewHandler returns the admission handler of a kind. auditor may be nil.
func NewHandler[T any](kind schema.GroupKind, rules Validator[T], auditor Auditor) admission.Handler {
	h := &handler[T]{kind: kind, rules: rules, auditor: auditor}
	return ForKind(kind, h.admit)
}

type handler[T any] struct {
	kind    schema.GroupKind
	rules   Validator[T]
	auditor Auditor
}

// admit refuses with 422 and one cause per field.
func (h *handler[T]) admit(ctx context.Context, req admission.Request) admission.Response {
	object := declared(req.Object.Raw)
	found, err := credential.Scan(object)
	if err != nil {
		return Invalid(h.kind, "", field.ErrorList{field.Forbidden(field.NewPath("object"), err.Error())})
	}
	if len(found) > 0 {
		return h.refuseCredential(req, found)
	}
	row, old, err := decode[T](object, req.OldObject.Raw)
	if err != nil {
		return Invalid(h.kind, req.Name, field.ErrorList{field.Forbidden(field.NewPath("object"), err.Error())})
	}
	from := Request{User: req.UserInfo, DryRun: req.DryRun != nil && *req.DryRun}
	errs, warnings, err := h.rules.Validate(ctx, from, row, old)
	if err != nil {
		log.FromContext(ctx).Error(err, "admission failed")
		return admission.Errored(http.StatusInternalServerError,
			fmt.Errorf("the hub failed to check the row; its log says why under request id %s", req.UID))
	}
	if len(errs) > 0 {
		return Invalid(h.kind, req.Name, errs).WithWarnings(warnings...)
	}
	return admission.Allowed("").WithWarnings(warnings...)
}

func (h *handler[T]) refuseCredential(req admission.Request, found []credential.Finding) admission.Response {
	refusal := CredentialRefusal{RequestID: string(req.UID), User: req.UserInfo.Username, Kind: h.kind.Kind, Name: req.Name}
	errs := make(field.ErrorList, 0, len(found))
	for _, f := range found {
		path := f.Path.String()
		if path == "metadata.name" {
			refusal.Name = ""
		}
		refusal.Fields = append(refusal.Fields, path)
		errs = append(errs, field.Forbidden(f.Path, fmt.Sprintf(
			"holds %s. cellcast keeps no credential: remove it, and revoke it if it was real", f.Form)))
	}
	if h.auditor != nil {
		h.auditor.CredentialRefused(refusal)
	}
	return Invalid(h.kind, refusal.Name, errs)
}
