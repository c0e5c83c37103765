package webhook_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/webhook"
	"cellcast.io/cellcast/pkg/webhook/webhooktest"
)

const canary = "c4naryC4NARY"

// draining refuses rows that aren't DRAINING and warns of those that were.
type draining struct{}

func (draining) Validate(_ context.Context, _ webhook.Request, row, old *registry.Cluster) (field.ErrorList, []string, error) {
	if row.Spec.State != registry.StateDraining {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "state"), "must be DRAINING")}, []string{"state"}, nil
	}
	if old != nil && old.Spec.State == registry.StateDraining {
		return nil, []string{"was DRAINING already"}, nil
	}
	return nil, nil, nil
}

type refusals []webhook.CredentialRefusal

func (r *refusals) CredentialRefused(refusal webhook.CredentialRefusal) { *r = append(*r, refusal) }

var clusterKind = schema.GroupKind{Group: "registry.cellcast.io", Kind: "Cluster"}

func clusterRow(metadata, spec, more string) []byte {
	return []byte(`{"apiVersion":"registry.cellcast.io/v1alpha1","kind":"Cluster","metadata":{` + metadata + `},"spec":{` + spec + `}` + more + `}`)
}

func TestHandle(t *testing.T) {
	const name, state = `"name":"a"`, `"state":"DRAINING"`
	with := func(req admission.Request, change func(*admission.Request)) admission.Request {
		change(&req)
		return req
	}
	type answer struct {
		Allowed  bool
		Code     int32
		Message  string
		Fields   []string
		Warnings []string
	}
	create := func(metadata, spec, more string) admission.Request {
		return webhooktest.Create(t, clusterRow(metadata, spec, more))
	}
	invalid := `Cluster.registry.cellcast.io "a" is invalid: `
	for sentence, tc := range map[string]struct {
		req  admission.Request
		want answer
	}{
		"admits what the rules admit": {create(name, state, ""), answer{Allowed: true, Code: 200}},
		"hands the rules the old row": {webhooktest.Update(t, clusterRow(name, state, ""), clusterRow(name, state, "")),
			answer{Allowed: true, Code: 200, Warnings: []string{"was DRAINING already"}}},
		"refuses what the rules refuse": {create(name, `"state":"LIVE"`, ""),
			answer{Code: 422, Message: invalid + "spec.state: Forbidden: must be DRAINING", Fields: []string{"spec.state"}, Warnings: []string{"state"}}},
		"looks for a credential before the rules": {create(name+`,"annotations":{"token":"`+canary+`"}`, `"state":"LIVE"`, ""),
			answer{Code: 422, Message: invalid + "metadata.annotations[token]: Forbidden: holds a value under the name of a credential. cellcast keeps no credential: remove it, and revoke it if it was real",
				Fields: []string{"metadata.annotations[token]"}}},
		"looks for it in fields that the kind doesn't have": {create(name, state+`,"token":"`+canary+`"`, ""),
			answer{Code: 422, Message: invalid + "spec.token: Forbidden: holds a value under the name of a credential. cellcast keeps no credential: remove it, and revoke it if it was real",
				Fields: []string{"spec.token"}}},
		"doesn't repeat a name that is a credential": {create(`"name":"abcdef.0c4nary0c4nary00"`, state, ""),
			answer{Code: 422, Message: `Cluster.registry.cellcast.io "" is invalid: metadata.name: Forbidden: holds a Kubernetes bootstrap token. cellcast keeps no credential: remove it, and revoke it if it was real`,
				Fields: []string{"metadata.name"}}},
		"refuses a field that it can't check": {create(name, state+`,"later":1`, ""),
			answer{Code: 422, Message: invalid + `object: Forbidden: this version of the hub can't read it, so it can't check it: unknown field "spec.later"`, Fields: []string{"object"}}},
		"refuses a field that stands there twice": {create(name, state+","+state, ""),
			answer{Code: 422, Message: invalid + `object: Forbidden: this version of the hub can't read it, so it can't check it: duplicate field "spec.state"`, Fields: []string{"object"}}},
		"takes the status of a later version":                           {create(name, state, `,"status":{"later":1}`), answer{Allowed: true, Code: 200}},
		"looks for no credential in the status, which is the hub's own": {create(name, state, `,"status":{"token":"`+canary+`"}`), answer{Allowed: true, Code: 200}},
		"looks for it beside a status": {create(name, state+`,"token":"`+canary+`"`, `,"status":{}`),
			answer{Code: 422, Message: invalid + "spec.token: Forbidden: holds a value under the name of a credential. cellcast keeps no credential: remove it, and revoke it if it was real",
				Fields: []string{"spec.token"}}},
		"refuses an object that is too large to search": {create(name+`,"annotations":{"a":"`+strings.Repeat("x", 1<<20)+`"}`, state, ""),
			answer{Code: 422, Message: `Cluster.registry.cellcast.io "" is invalid: object: Forbidden: the object has 1048714 bytes; at most 1048576 can be searched for credentials: shorten its annotations`, Fields: []string{"object"}}},
		"lets every delete pass": {with(create(name, "", ""), func(r *admission.Request) {
			r.Operation = admissionv1.Delete
			r.OldObject, r.Object.Raw = r.Object, nil
		}), answer{Allowed: true, Code: 200}},
		"refuses an operation that it isn't for": {with(create(name, state, ""), func(r *admission.Request) { r.Operation = admissionv1.Connect }),
			answer{Code: 400, Message: "this webhook takes creates, updates and deletes"}},
		"refuses another kind": {with(create(name, state, ""), func(r *admission.Request) { r.Kind.Kind = "Secret" }),
			answer{Code: 400, Message: "this path takes Cluster.registry.cellcast.io; the webhook configuration sends Secret.registry.cellcast.io here"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			resp := (&admission.Webhook{Handler: webhook.NewHandler(clusterKind, draining{}, nil)}).Handle(t.Context(), tc.req)
			got := answer{Allowed: resp.Allowed, Code: resp.Result.Code, Message: resp.Result.Message, Warnings: resp.Warnings}
			if resp.Result.Details != nil {
				for _, cause := range resp.Result.Details.Causes {
					got.Fields = append(got.Fields, cause.Field)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACredentialIsAuditedWithoutItsValue(t *testing.T) {
	var got refusals
	handler := webhook.NewHandler(clusterKind, draining{}, &got)
	handler.Handle(t.Context(), webhooktest.Create(t, clusterRow(`"name":"a","labels":{"token":"`+canary+`"}`, `"password":"`+canary+`"`, "")))
	handler.Handle(t.Context(), webhooktest.Create(t, clusterRow(`"name":"abcdef.0c4nary0c4nary00"`, "", "")))
	handler.Handle(t.Context(), webhooktest.Create(t, clusterRow(`"name":"a"`, `"state":"LIVE"`, "")))
	want := refusals{
		{RequestID: "request-1", User: "operator", Kind: "Cluster", Name: "a", Fields: []string{"metadata.labels[token]", "spec.password"}},
		{RequestID: "request-1", User: "operator", Kind: "Cluster", Name: "", Fields: []string{"metadata.name"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("audited (-want +got):\n%s", diff)
	}
}
