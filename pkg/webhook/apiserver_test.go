package webhook_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/webhook/webhooktest"
)

func TestOnARealAPIServer(t *testing.T) {
	hub := startGuardedHub(t)
	t.Run("rows", func(t *testing.T) { rowsAtTheAPIServer(t, hub) })
	t.Run("schema", func(t *testing.T) { schemaAtTheAPIServer(t, hub) })
	t.Run("owners", func(t *testing.T) { ownersAtTheAPIServer(t, hub) })
	t.Run("secrets", func(t *testing.T) { secretsAtTheAPIServer(t, hub) })
	t.Run("examples", func(t *testing.T) { examplesAtTheAPIServer(t, hub) })
	t.Run("without the hub", func(t *testing.T) { withoutTheHub(t, hub) })
}

// The rows that the handlers are tested with, with the schema, its CEL and its
// pruning before them.
func rowsAtTheAPIServer(t *testing.T, hub guardedHub) {
	operator := hub.as(t, hub.Admin.Config())
	for _, dir := range []string{"clustertarget", "kubeconfig"} {
		for _, row := range webhooktest.Rows(t, dir+"/testdata") {
			t.Run(row.Name, func(t *testing.T) {
				object := &unstructured.Unstructured{}
				if err := json.Unmarshal(row.JSON, object); err != nil {
					t.Fatal(err)
				}
				err := operator.Create(t.Context(), object, client.DryRunAll)
				if len(row.Refused) == 0 {
					if err != nil {
						t.Errorf("an honest object is refused: %v", err)
					}
					return
				}
				if err == nil {
					t.Fatal("the object was taken")
				}
				if strings.Contains(err.Error(), row.Secret) {
					t.Errorf("the answer quotes the secret: %v", err)
				}
				if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
					t.Errorf("the answer is no validation error: %v", err)
				}
			})
		}
	}
}

// What the schema refuses by itself, in words that repeat no value.
func schemaAtTheAPIServer(t *testing.T, hub guardedHub) {
	const canary = "C4nary_C4nary"
	operator := hub.as(t, hub.Admin.Config())
	long := strings.Repeat("a", 64)
	for sentence, tc := range map[string]struct {
		row  *unstructured.Unstructured
		want string
	}{
		"a user and a group":     {brought("a", map[string]any{"user": "a", "group": "b"}), "name a user or a group, not both"},
		"a system: group":        {brought("a", map[string]any{"group": "system:authenticated"}), "a system: group has members that nobody chose"},
		"two credentials":        {brought("a", nil, set("users/a/b", "spec", "credentialRef", "vaultRef", "path")), "name a secretRef or a vaultRef, and one of them only"},
		"no credential":          {brought("a", nil, remove("spec", "credentialRef", "secretRef")), "name a secretRef or a vaultRef, and one of them only"},
		"a Secret":               {brought("a", nil, set(canary, "spec", "credentialRef", "secretRef", "name")), "must be the name of a Secret"},
		"a path of one segment":  {brought("a", nil, inVault(canary)), "must be a path such as users/NAME/SECRET"},
		"a path that climbs":     {brought("a", nil, inVault("users/a/../b/"+canary)), "must be a path such as users/NAME/SECRET"},
		"a path with a query":    {brought("a", nil, inVault("users/a/b?"+canary)), "must be a path such as users/NAME/SECRET"},
		"a key of Vault":         {brought("a", nil, inVault("users/admin/b"), set(canary+"/", "spec", "credentialRef", "vaultRef", "key")), "must be letters, digits and ._-"},
		"a namespace":            {brought("a", nil, set(canary, "spec", "namespace")), "must be the name of a namespace"},
		"a ServiceAccount":       {brought("a", nil, set(canary, "spec", "serviceAccountName")), "must be the name of a ServiceAccount"},
		"a pull secret":          {brought("a", nil, set([]any{canary}, "spec", "imagePullSecrets")), "must be the name of a Secret"},
		"a claim without a name": {brought("a", nil, set("PersistentVolumeClaim", "spec", "artifacts", "backend")), "artifacts.claimName is required"},
		"a claim":                {brought("a", nil, set(canary, "spec", "artifacts", "claimName")), "must be the name of a PersistentVolumeClaim"},
		"an http ingestURL":      {brought("a", nil, set("http://hub.example.com/"+canary, "spec", "ingestURL")), "must be an https URL with a host"},
		"an ingestURL with user": {brought("a", nil, set("https://"+canary+"@hub.example.com", "spec", "ingestURL")), "must be an https URL with a host"},
		"one with a query":       {brought("a", nil, set("https://hub.example.com?"+canary, "spec", "ingestURL")), "must be an https URL with a host"},
		"one without a host":     {brought("a", nil, set("https:///"+canary, "spec", "ingestURL")), "must be an https URL with a host"},
		"a queue":                {brought("a", nil, set(canary, "spec", "queue")), "must be the name of a LocalQueue"},
		"a substrate":            {brought("a", nil, set(canary, "spec", "measureSubstrate")), "must be lower-case letters, digits, - and ."},
		"an image without digest": {brought("a", nil, set("registry.example.com/"+canary, "spec", "images", "loop")),
			"must be an image with its digest"},
		"a name of 64 characters": {brought(long, nil), "a target's name has at most 63 characters"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := operator.Create(t.Context(), tc.row, client.DryRunAll)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the answer repeats the value: %v", err)
			}
		})
	}
}

func inVault(path string) func(*unstructured.Unstructured) {
	return set(map[string]any{"vaultRef": map[string]any{"path": path}}, "spec", "credentialRef")
}

func ownersAtTheAPIServer(t *testing.T, hub guardedHub) {
	ctx := t.Context()
	alice := hub.user(t, "alice", []string{"payments-team"}, mayGet("hers"))
	bob := hub.user(t, "bob", []string{"payments-team"}, mayGet("his"))
	mallory := hub.user(t, "mallory", nil, mayGet("theirs"))
	carol := hub.user(t, "carol", []string{"payments-team"})
	local := hub.user(t, "local", nil, everything)
	gitops := hub.user(t, "gitops", nil, mayGet("hers"))
	hub.assigns(t, "gitops")

	owned := brought("owned", nil)
	if err := alice.Create(ctx, owned); err != nil {
		t.Fatal(err)
	}
	if owner, _, _ := unstructured.NestedStringMap(owned.Object, "spec", "owner"); len(owner) != 1 || owner["user"] != "alice" {
		t.Fatalf("the owner is %v", owner)
	}
	if err := alice.Apply(ctx, client.ApplyConfigurationFromUnstructured(brought("applied", nil)), client.FieldOwner("alice")); err != nil {
		t.Fatal(err)
	}
	if err := alice.Apply(ctx, client.ApplyConfigurationFromUnstructured(brought("applied", nil, set("x", "spec", "queue"))), client.FieldOwner("alice")); err != nil {
		t.Errorf("an apply that names no owner takes away the one that was filled in: %v", err)
	}

	refused(t, bob.Create(ctx, brought("bobs", nil)), "spec.credentialRef.secretRef")
	refused(t, bob.Create(ctx, brought("bobs", map[string]any{"user": "alice"})), "spec.owner")
	refused(t, alice.Create(ctx, brought("prod-eu", nil)), "metadata.name")
	refused(t, alice.Create(ctx, brought("bobs", nil, inVault("users/bob/a"))), "spec.credentialRef.vaultRef.path")
	if err := alice.Create(ctx, brought("hers", nil, inVault("users/alice/a"))); err != nil {
		t.Errorf("a path under the prefix of the owner who was filled in is refused: %v", err)
	}

	for sentence, patch := range map[string]string{
		"spec":                 `{"spec":{"serviceAccountName":"admin"}}`,
		"spec.owner":           `{"spec":{"owner":{"user":"mallory"}}}`,
		"metadata.labels[env]": `{"metadata":{"labels":{"env":"dev"}}}`,
	} {
		refused(t, mallory.Patch(ctx, brought("owned", nil), merge(patch)), sentence)
	}
	if err := mallory.Patch(ctx, brought("owned", nil), merge(`{"metadata":{"labels":{"team":"x"},"annotations":{"note":"x"}}}`)); err != nil {
		t.Errorf("a label and an annotation are refused: %v", err)
	}

	if err := alice.Patch(ctx, brought("owned", nil), merge(`{"spec":{"owner":{"user":null,"group":"payments-team"}}}`)); err != nil {
		t.Fatalf("a target can't be handed to a group of the owner's: %v", err)
	}
	if err := bob.Patch(ctx, brought("owned", nil), merge(`{"spec":{"queue":"turns"}}`)); err != nil {
		t.Errorf("a member of the owning group can't change the target: %v", err)
	}
	refused(t, bob.Patch(ctx, brought("owned", nil), merge(`{"spec":{"serviceAccountName":"turns"}}`)), "spec.credentialRef.secretRef")
	refused(t, bob.Patch(ctx, brought("owned", nil), merge(`{"spec":{"credentialRef":{"secretRef":{"name":"hidden"}}}}`)), "spec.credentialRef.secretRef")

	refused(t, carol.Patch(ctx, brought("owned", nil), merge(`{"spec":{"owner":{"group":null,"user":"carol"}}}`)), "spec.credentialRef.secretRef")
	refused(t, carol.Patch(ctx, brought("owned", nil), merge(`{"spec":{"ingestURL":"https://carol.example"}}`)), "spec.credentialRef.secretRef")
	refused(t, alice.Patch(ctx, brought("owned", nil), merge(`{"metadata":{"annotations":{"note":"`+strings.Repeat("x", 70_000)+`"}}}`)), "metadata")

	if err := gitops.Create(ctx, brought("assigned", map[string]any{"user": "alice"})); err != nil {
		t.Errorf("one who assigns owners can't: %v", err)
	}
	refused(t, local.Create(ctx, brought("elsewhere", map[string]any{"user": "alice"})), "spec.owner")
	refused(t, local.Patch(ctx, brought("owned", nil), merge(`{"spec":{"owner":{"group":null,"user":"local"}}}`)), "spec.owner")
	if err := hub.as(t, hub.Admin.Config()).Create(ctx, brought("", map[string]any{"user": "admin"}, set("made-", "metadata", "generateName"))); err != nil {
		t.Errorf("a row with a generated name is refused: %v", err)
	}
}

func secretsAtTheAPIServer(t *testing.T, hub guardedHub) {
	ctx := t.Context()
	text, err := os.ReadFile("../kubeconfig/testdata/good.plain.yaml")
	if err != nil {
		t.Fatal(err)
	}
	secrets := hub.admin.CoreV1().Secrets("default")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hers"}, Type: registry.SecretTypeKubeconfig, StringData: map[string]string{"kubeconfig": string(text)}}
	if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = secrets.Patch(ctx, "hers", types.MergePatchType, []byte(`{"stringData":{"kubeconfig":"users: canary"}}`), metav1.PatchOptions{})
	refused(t, err, "data[kubeconfig]")
	if err != nil && strings.Contains(err.Error(), "canary") {
		t.Errorf("the answer quotes the data: %v", err)
	}
	if _, err := secrets.Patch(ctx, "hers", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("a label is refused: %v", err)
	}
}

// documents are the objects of an example.
func documents(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../../artifacts/examples/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

func examplesAtTheAPIServer(t *testing.T, hub guardedHub) {
	operator := hub.as(t, hub.Admin.Config())
	for _, object := range append(documents(t, "clustertarget.yaml"), documents(t, "target-secret.yaml")...) {
		object.SetNamespace("default")
		if err := operator.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// While the hub is down, nothing unchecked comes in, and what is there can be got
// rid of. Other Secrets don't wait for it.
func withoutTheHub(t *testing.T, hub guardedHub) {
	ctx := t.Context()
	operator := hub.as(t, hub.Admin.Config())
	if err := operator.Create(ctx, brought("stuck", nil, set([]any{"cellcast.io/target"}, "metadata", "finalizers"),
		set([]any{map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "hers", "uid": "1"}}, "metadata", "ownerReferences"))); err != nil {
		t.Fatal(err)
	}
	hub.handlers.CloseClientConnections()
	hub.handlers.Close()
	secrets := hub.admin.CoreV1().Secrets("default")

	if err := operator.Create(ctx, brought("unchecked", map[string]any{"user": "admin"})); err == nil {
		t.Error("a target comes in")
	}
	for sentence, patch := range map[string]string{
		"a label":    `{"metadata":{"labels":{"team":"x"}}}`,
		"the spec":   `{"spec":{"serviceAccountName":"x"}}`,
		"a new name": `{"metadata":{"finalizers":["cellcast.io/target","example.com/x"]}}`,
	} {
		if err := operator.Patch(ctx, brought("stuck", nil), merge(patch)); err == nil {
			t.Errorf("%s can be changed", sentence)
		}
	}
	if _, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "unchecked"}, Type: registry.SecretTypeKubeconfig}, metav1.CreateOptions{}); err == nil {
		t.Error("a kubeconfig comes in")
	}
	if _, err := secrets.Patch(ctx, "hers", types.MergePatchType, []byte(`{"stringData":{"kubeconfig":"x"}}`), metav1.PatchOptions{}); err == nil {
		t.Error("a kubeconfig can be changed")
	}

	if err := operator.Patch(ctx, brought("stuck", nil), merge(`{"metadata":{"ownerReferences":null}}`)); err != nil {
		t.Errorf("owner references can't be removed: %v", err)
	}
	if err := operator.Delete(ctx, brought("stuck", nil)); err != nil {
		t.Errorf("a target can't be deleted: %v", err)
	}
	if err := operator.Patch(ctx, brought("stuck", nil), merge(`{"metadata":{"finalizers":null}}`)); err != nil {
		t.Errorf("a finalizer can't be removed: %v", err)
	}
	if err := operator.Get(ctx, client.ObjectKey{Namespace: "default", Name: "stuck"}, brought("stuck", nil)); !apierrors.IsNotFound(err) {
		t.Errorf("the target is still there: %v", err)
	}
	if _, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("another Secret can't be created: %v", err)
	}
	if _, err := secrets.Patch(ctx, "hers", types.MergePatchType, []byte(`{"metadata":{"labels":{"c":"d"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("a kubeconfig can't be labelled: %v", err)
	}
	if err := secrets.Delete(ctx, "hers", metav1.DeleteOptions{}); err != nil {
		t.Errorf("a kubeconfig can't be deleted: %v", err)
	}
}
