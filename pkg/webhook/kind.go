package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// ForKind returns a handler that hands the creates and updates of one kind to
// admit. A delete always passes. Anything else is a webhook configuration that
// doesn't fit, and is answered 400.
func ForKind(kind schema.GroupKind, admit admission.HandlerFunc) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		if got := (schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}); got != kind {
			return admission.Errored(http.StatusBadRequest, fmt.Errorf("this path takes %s; the webhook configuration sends %s here", kind, got))
		}
		switch req.Operation {
		case admissionv1.Delete:
			return admission.Allowed("")
		case admissionv1.Create, admissionv1.Update:
			return admit(ctx, req)
		default:
			return admission.Errored(http.StatusBadRequest, errors.New("this webhook takes creates, updates and deletes"))
		}
	})
}

// Invalid is the refusal of an object: 422, with one cause per field, as the API
// server itself answers.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) admission.Response {
	status := apierrors.NewInvalid(kind, name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}
