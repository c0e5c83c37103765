package clustertarget

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	strictjson "sigs.k8s.io/json"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/webhook"
)

// OwnerPath is where the webhook configuration sends new ClusterTargets to have
// their owner filled in.
const OwnerPath = "/admission/clustertargets/owner"

// NewOwnerHandler returns the admission handler that makes the creator of a
// ClusterTarget its owner where it names none. It changes nothing else, and
// refuses nothing: that is for the handler at Path.
func NewOwnerHandler() admission.Handler {
	return webhook.ForKind(registry.SchemeGroupVersion.WithKind("ClusterTarget").GroupKind(), stamp)
}

func stamp(_ context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create || req.UserInfo.Username == "" || !namesNobody(req.Object.Raw) {
		return admission.Allowed("")
	}
	patch, err := json.Marshal([]map[string]any{{
		"op": "add", "path": "/spec/owner", "value": registry.TargetOwner{User: req.UserInfo.Username},
	}})
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("writing the patch of the owner: %w", err))
	}
	kind := admissionv1.PatchTypeJSONPatch
	response := admission.Allowed("")
	response.Patch, response.PatchType = patch, &kind
	return response
}

// namesNobody is false of a row that can't be read too: it comes before its
// schema is looked at, and that will refuse it.
func namesNobody(object []byte) bool {
	var row struct {
		Spec *struct {
			Owner registry.TargetOwner `json:"owner"`
		} `json:"spec"`
	}
	err := strictjson.UnmarshalCaseSensitivePreserveInts(object, &row)
	return err == nil && row.Spec != nil && row.Spec.Owner == registry.TargetOwner{}
}
