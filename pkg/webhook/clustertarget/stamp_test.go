package clustertarget_test

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"cellcast.io/cellcast/pkg/webhook/clustertarget"
	"cellcast.io/cellcast/pkg/webhook/webhooktest"
)

func TestTheCreatorBecomesTheOwnerOfARowThatNamesNobody(t *testing.T) {
	const patched = `[{"op":"add","path":"/spec/owner","value":{"user":"alice"}}]`
	object := func(spec string) []byte {
		return []byte(`{"apiVersion":"registry.cellcast.io/v1alpha1","kind":"ClusterTarget","metadata":{"name":"a"}` + spec + `}`)
	}
	create := func(spec string) admission.Request {
		return webhooktest.As(webhooktest.Create(t, object(spec)), "alice", "payments")
	}
	for sentence, tc := range map[string]struct {
		req  admission.Request
		want string
	}{
		"without an owner":                     {create(`,"spec":{"namespace":"b"}`), patched},
		"with an owner that is empty":          {create(`,"spec":{"owner":{}}`), patched},
		"with an owner that is null":           {create(`,"spec":{"owner":null}`), patched},
		"with empty names":                     {create(`,"spec":{"owner":{"user":"","group":""}}`), patched},
		"not one with a user":                  {create(`,"spec":{"owner":{"user":"bob"}}`), ""},
		"not one with a group":                 {create(`,"spec":{"owner":{"group":"payments"}}`), ""},
		"with a name that counts case":         {create(`,"spec":{"Owner":{"user":"bob"}}`), patched},
		"not one without a spec":               {create(``), ""},
		"not one whose spec is no object":      {create(`,"spec":"x"`), ""},
		"not one whose owner is no object":     {create(`,"spec":{"owner":"x"}`), ""},
		"not where the creator has no name":    {webhooktest.As(create(`,"spec":{}`), ""), ""},
		"not on an update":                     {webhooktest.As(webhooktest.Update(t, object(`,"spec":{}`), object(`,"spec":{}`)), "alice"), ""},
		"with a name that JSON has to escape":  {webhooktest.As(create(`,"spec":{}`), `a"}b`), `[{"op":"add","path":"/spec/owner","value":{"user":"a\"}b"}}]`},
		"not on a delete, which has no object": {admission.Request{AdmissionRequest: deletion(create(""))}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			resp := (&admission.Webhook{Handler: clustertarget.NewOwnerHandler()}).Handle(t.Context(), tc.req)
			if !resp.Allowed || string(resp.Patch) != tc.want {
				t.Errorf("allowed %v, patch %s", resp.Allowed, resp.Patch)
			}
			if (resp.PatchType == nil) != (tc.want == "") || resp.PatchType != nil && *resp.PatchType != admissionv1.PatchTypeJSONPatch {
				t.Errorf("the type of the patch is %v", resp.PatchType)
			}
		})
	}
}

func deletion(req admission.Request) admissionv1.AdmissionRequest {
	req.Operation = admissionv1.Delete
	req.OldObject, req.Object.Raw = req.Object, nil
	return req.AdmissionRequest
}
