package webhooktest

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Create is the request of an API server that is to create the row.
func Create(t testing.TB, row []byte) admission.Request {
	t.Helper()
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(row, &object); err != nil {
		t.Fatal(err)
	}
	gvk := object.GroupVersionKind()
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       "request-1",
		Kind:      metav1.GroupVersionKind(gvk),
		Name:      object.Name,
		Namespace: object.Namespace,
		Operation: admissionv1.Create,
		UserInfo:  authenticationv1.UserInfo{Username: "operator"},
		Object:    runtime.RawExtension{Raw: row},
	}}
}

// Update is the request of an API server that is to replace old by row.
func Update(t testing.TB, old, row []byte) admission.Request {
	t.Helper()
	req := Create(t, row)
	req.Operation = admissionv1.Update
	req.OldObject = runtime.RawExtension{Raw: old}
	return req
}

// As is the request of another user than the operator.
func As(req admission.Request, user string, groups ...string) admission.Request {
	req.UserInfo = authenticationv1.UserInfo{Username: user, Groups: groups}
	return req
}

// Causes are what a response refuses, as "field: message".
func Causes(resp admission.Response) []string {
	if resp.Result == nil || resp.Result.Details == nil {
		return nil
	}
	var causes []string
	for _, cause := range resp.Result.Details.Causes {
		causes = append(causes, cause.Field+": "+cause.Message)
	}
	return causes
}

// Answer is a response as the one who sent the row reads it.
func Answer(t testing.TB, resp admission.Response) string {
	t.Helper()
	text, err := json.Marshal(resp.AdmissionResponse)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
