// Package kubeconfig is the admission of Secrets that hold the kubeconfig of a
// brought target: one that the hub wouldn't take is never stored, and its writer
// is told the line and the field, not the value. Secrets of other types pass.
//
// It's help for who writes the Secret and not the hub's defence: the hub reads
// the kubeconfig by the same rules each time.
package kubeconfig

import (
	"context"
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	strictjson "sigs.k8s.io/json"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/kubeconfig/address"
	"cellcast.io/cellcast/pkg/webhook"
)

// Path is where the webhook configuration sends Secrets.
const Path = "/admission/secrets"

// NewHandler returns the admission handler of Secrets of that type. permitted is
// where the hub connects to. auditor may be nil.
func NewHandler(permitted address.Policy, auditor webhook.Auditor) admission.Handler {
	h := handler{permitted, auditor}
	return webhook.ForKind(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), h.admit)
}

type handler struct {
	permitted address.Policy
	auditor   webhook.Auditor
}

func (h handler) admit(_ context.Context, req admission.Request) admission.Response {
	var secret corev1.Secret
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(req.Object.Raw, &secret); err != nil {
		// The error could quote the data.
		return admission.Errored(http.StatusBadRequest, errors.New("the object isn't a Secret that the hub can read"))
	}
	if secret.Type != registry.SecretTypeKubeconfig {
		return admission.Allowed("")
	}
	errs := h.check(secret.Data)
	if len(errs) == 0 {
		return admission.Allowed("").WithWarnings(copies(secret.Annotations)...)
	}
	h.audit(req, errs)
	return webhook.Invalid(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), req.Name, errs)
}

// check names all that is wrong with the kubeconfig at once. An address that
// isn't permitted is looked at only where nothing else is wrong.
func (h handler) check(data map[string][]byte) field.ErrorList {
	path := field.NewPath("data")
	text, found := data[registry.SecretKeyKubeconfig]
	var errs field.ErrorList
	if len(data) > 1 || len(data) == 1 && !found { // a key's name could be anything, a token too
		errs = append(errs, field.Forbidden(path, "must have the key "+registry.SecretKeyKubeconfig+" and no other"))
	}
	path = path.Key(registry.SecretKeyKubeconfig)
	if !found {
		return append(errs, field.Required(path, "the kubeconfig is missing"))
	}
	for _, refused := range kubeconfig.Refusals(text) {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, refused.Error()))
	}
	if len(errs) > 0 {
		return errs
	}
	if _, err := kubeconfig.ParsePermitted(text, h.permitted); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}

func (h handler) audit(req admission.Request, errs field.ErrorList) {
	if h.auditor == nil {
		return
	}
	refusal := webhook.CredentialRefusal{RequestID: string(req.UID), User: req.UserInfo.Username, Kind: "Secret", Name: req.Name}
	for _, err := range errs {
		if n := len(refusal.Fields); n == 0 || refusal.Fields[n-1] != err.Field {
			refusal.Fields = append(refusal.Fields, err.Field)
		}
	}
	h.auditor.CredentialRefused(refusal)
}

// copies warns of the annotation in which kubectl apply keeps the Secret once
// more: it's there for whoever looks at metadata alone, and stays when the data is
// changed by other means.
func copies(annotations map[string]string) []string {
	if annotations[corev1.LastAppliedConfigAnnotation] == "" {
		return nil
	}
	return []string{"metadata.annotations[" + corev1.LastAppliedConfigAnnotation + "] holds a second copy of the kubeconfig: kubectl apply keeps one there; " +
		"kubectl create and kubectl apply --server-side don't"}
}
