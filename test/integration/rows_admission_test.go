package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/webhook/webhooktest"
)

// The rows that the webhooks are tested with go to a real API server too, with
// its schema, its CEL and its pruning before the webhook.
func TestSmuggledCredentialsAreRefusedByTheAPIServer(t *testing.T) {
	require(t)
	admin, err := client.New(hub.Hub.Admin.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"cluster", "placementpolicy"} {
		for _, row := range webhooktest.Rows(t, "../../pkg/webhook/"+dir+"/testdata") {
			t.Run(dir+"/"+row.Name, func(t *testing.T) {
				object := &unstructured.Unstructured{}
				if err := json.Unmarshal(row.JSON, object); err != nil {
					t.Fatal(err)
				}
				err := admin.Create(t.Context(), object, client.DryRunAll)
				if len(row.Refused) == 0 {
					if err != nil {
						t.Errorf("an honest row is refused: %v", err)
					}
					return
				}
				if err == nil {
					t.Fatal("the row was taken")
				}
				if row.Secret != "" && strings.Contains(err.Error(), row.Secret) {
					t.Errorf("the answer quotes the secret: %v", err)
				}
				if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
					t.Errorf("the answer is no validation error: %v", err)
				}
			})
		}
	}
}

// A row that is stored stays as it was when a change to it is refused.
func TestARefusedChangeLeavesTheRowAsItWas(t *testing.T) {
	require(t)
	clusters := hub.Admin.RegistryV1alpha1().Clusters()
	before, err := clusters.Get(t.Context(), "prod-eu", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for sentence, patch := range map[string]string{
		"userinfo in the endpoint":         `{"spec":{"endpoint":"https://admin:c4nary@127.0.0.1:6443"}}`,
		"a query in the endpoint":          `{"spec":{"endpoint":"https://127.0.0.1:6443?token=c4nary"}}`,
		"http":                             `{"spec":{"endpoint":"http://127.0.0.1:6443"}}`,
		"another cell's audience":          `{"spec":{"trust":{"audience":"cellcast:cell:prod-us"}}}`,
		"the hub's own issuer as audience": `{"spec":{"trust":{"audience":"` + hub.Hub.Issuer + `"}}}`,
		"an unknown state":                 `{"spec":{"state":"ASLEEP"}}`,
		"a token with a state change":      `{"metadata":{"annotations":{"note":"Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjNG5hcnkifQ.c2lnbmF0dXJl"}},"spec":{"state":"DRAINING"}}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := clusters.Patch(t.Context(), "prod-eu", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if !apierrors.IsInvalid(err) {
				t.Errorf("got %v, want an answer that names the field", err)
			}
			if err != nil && strings.Contains(err.Error(), "c4nary") {
				t.Errorf("the answer quotes the secret: %v", err)
			}
		})
	}
	after, err := clusters.Get(t.Context(), "prod-eu", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.ResourceVersion != before.ResourceVersion && after.Generation != before.Generation {
		t.Errorf("the row changed: %+v", after.Spec)
	}
}

func TestAPolicyThatDoesNotCompileIsRefused(t *testing.T) {
	require(t)
	for sentence, tt := range map[string]struct{ expression, text string }{
		"it isn't CEL":              {"claims.ref ==", "spec.subjects[0].expression"},
		"it yields no bool":         {"claims.ref", "bool"},
		"it knows no such variable": {"request.user == 'a'", "undeclared"},
		"it costs too much":         {"groups.all(a, groups.all(b, groups.all(c, groups.all(d, a + b + c != d))))", "cost"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := hub.Admin.RegistryV1alpha1().PlacementPolicies().Create(t.Context(), &registryv1alpha1.PlacementPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: "never"},
				Spec: registryv1alpha1.PlacementPolicySpec{
					Subjects:   []registryv1alpha1.PolicySubject{{Issuer: hub.CI.URL(), Expression: tt.expression}},
					Credential: registryv1alpha1.CredentialScope{Namespace: "payments", ServiceAccountName: "deployer"},
				},
			}, metav1.CreateOptions{})
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want it invalid, with %q", err, tt.text)
			}
		})
	}
}

// The webhook fails closed, and yet a cell can be drained while the hub is down:
// just then it's needed.
func TestWhileTheHubIsDownOnlyTheStateCanChange(t *testing.T) {
	require(t)
	server := hub.Hub.Server
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the hub answers again", func(ctx context.Context) error {
			_, err := hub.Admin.CellcastV1alpha1().Cells().List(ctx, metav1.ListOptions{})
			return err
		})
	}()
	clusters := hub.Admin.RegistryV1alpha1().Clusters()
	for _, state := range []registryv1alpha1.ClusterState{registryv1alpha1.StateDraining, registryv1alpha1.StateLive} {
		patch := fmt.Appendf(nil, `{"spec":{"state":%q}}`, state)
		if _, err := clusters.Patch(t.Context(), "dev-eu", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Errorf("the state can't be set to %s: %v", state, err)
		}
	}
	for sentence, patch := range map[string]string{
		"a label":               `{"metadata":{"labels":{"env":"prod"}}}`,
		"an annotation":         `{"metadata":{"annotations":{"note":"x"}}}`,
		"the endpoint":          `{"spec":{"endpoint":"https://127.0.0.1:1"}}`,
		"the state and a label": `{"metadata":{"labels":{"a":"b"}},"spec":{"state":"DRAINING"}}`,
	} {
		if _, err := clusters.Patch(t.Context(), "dev-eu", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err == nil {
			t.Errorf("with the hub down, %s could be changed", sentence)
		}
	}
}

func TestExamplesAreTaken(t *testing.T) {
	require(t)
	admin, err := client.New(hub.Hub.Admin.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range examples(t) {
		object.SetName("example-" + object.GetName())
		if object.GetKind() == "Cluster" { // the fleet has a cell with the example's audience
			if err := unstructured.SetNestedField(object.Object, "cellcast:cell:example", "spec", "trust", "audience"); err != nil {
				t.Fatal(err)
			}
		}
		if err := admin.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

func examples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range documents(t, "../../artifacts/examples/cluster.yaml", "../../artifacts/examples/placementpolicy.yaml") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}
