package webhook_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"cellcast.io/cellcast/pkg/webhook/cluster"
	"cellcast.io/cellcast/pkg/webhook/clustertarget"
	"cellcast.io/cellcast/pkg/webhook/kubeconfig"
	"cellcast.io/cellcast/pkg/webhook/placementpolicy"
)

// read decodes a configuration strictly.
func read(t *testing.T, file string, configuration any) {
	t.Helper()
	text, err := os.ReadFile("../../artifacts/webhook/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, configuration); err != nil {
		t.Fatal(err)
	}
}

// configured returns the webhook that is configured for a path.
func configured(t *testing.T, path string) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	read(t, "validatingwebhookconfiguration.yaml", &configuration)
	for _, w := range configuration.Webhooks {
		if *w.ClientConfig.Service.Path == path {
			return w
		}
	}
	t.Fatalf("no webhook has the path %s", path)
	return admissionregistrationv1.ValidatingWebhook{}
}

func TestConfigurationFailsClosed(t *testing.T) {
	for path, resource := range map[string]string{
		cluster.Path: "clusters", placementpolicy.Path: "placementpolicies", clustertarget.Path: "clustertargets", kubeconfig.Path: "secrets",
	} {
		w := configured(t, path)
		service := w.ClientConfig.Service
		if service.Namespace != "cellcast-system" || service.Name != "cellcast-hub" {
			t.Errorf("%s: the service is %s/%s", path, service.Namespace, service.Name)
		}
		if *w.FailurePolicy != admissionregistrationv1.Fail || *w.SideEffects != admissionregistrationv1.SideEffectClassNone ||
			*w.MatchPolicy != admissionregistrationv1.Equivalent || *w.TimeoutSeconds > 5 {
			t.Errorf("%s: failurePolicy %s, sideEffects %s, matchPolicy %s, timeoutSeconds %d",
				path, *w.FailurePolicy, *w.SideEffects, *w.MatchPolicy, *w.TimeoutSeconds)
		}
		if w.NamespaceSelector != nil || w.ObjectSelector != nil {
			t.Errorf("%s: a selector lets rows past the webhook", path)
		}
		if len(w.Rules) != 1 || w.Rules[0].Resources[0] != resource || len(w.Rules[0].Operations) != 2 {
			t.Errorf("%s: rules %v", path, w.Rules)
		}
	}
}

func TestTheOwnerIsFilledInOnCreateAlone(t *testing.T) {
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	read(t, "mutatingwebhookconfiguration.yaml", &configuration)
	if len(configuration.Webhooks) != 1 {
		t.Fatalf("%d webhooks change objects", len(configuration.Webhooks))
	}
	w := configuration.Webhooks[0]
	service := w.ClientConfig.Service
	if service.Namespace != "cellcast-system" || service.Name != "cellcast-hub" || *service.Path != clustertarget.OwnerPath {
		t.Errorf("the service is %s/%s at %s", service.Namespace, service.Name, *service.Path)
	}
	if *w.FailurePolicy != admissionregistrationv1.Fail || *w.SideEffects != admissionregistrationv1.SideEffectClassNone ||
		*w.ReinvocationPolicy != admissionregistrationv1.NeverReinvocationPolicy || *w.TimeoutSeconds > 5 {
		t.Errorf("failurePolicy %s, sideEffects %s, reinvocationPolicy %s, timeoutSeconds %d",
			*w.FailurePolicy, *w.SideEffects, *w.ReinvocationPolicy, *w.TimeoutSeconds)
	}
	if w.NamespaceSelector != nil || w.ObjectSelector != nil || len(w.MatchConditions) > 0 {
		t.Error("a selector or condition lets rows past the webhook")
	}
	want := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{"registry.cellcast.io"}, APIVersions: []string{"v1alpha1"},
			Resources: []string{"clustertargets"}, Scope: new(admissionregistrationv1.NamespacedScope)},
	}}
	if diff := cmp.Diff(want, w.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// row is a Cluster, PlacementPolicy or ClusterTarget as the API server hands it to a webhook.
func row(kind string) *unstructured.Unstructured {
	spec := map[string]any{
		"endpoint": "https://prod-eu.example.com:6443", "provider": "generic", "state": "LIVE",
		"trust": map[string]any{"audience": "cellcast:cell:prod-eu"},
	}
	if kind == "PlacementPolicy" {
		spec = map[string]any{
			"subjects": []any{map[string]any{"groups": []any{"developers"}}}, "clusterSelector": map[string]any{},
			"credential": map[string]any{"namespace": "payments", "serviceAccountName": "deployer"},
		}
	}
	if kind == "ClusterTarget" {
		spec = map[string]any{
			"owner": map[string]any{"user": "alice"}, "credentialRef": map[string]any{"secretRef": map[string]any{"name": "a"}},
			"namespace": "payments", "imagePullSecrets": []any{"pull"},
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "registry.cellcast.io/v1alpha1", "kind": kind,
		"metadata": map[string]any{
			"name": "a", "uid": "1", "resourceVersion": "10", "generation": int64(1), "creationTimestamp": "2026-01-01T00:00:00Z",
			"labels":      map[string]any{"env": "prod"},
			"annotations": map[string]any{"note": "x"},
			"finalizers":  []any{"example.com/a", "example.com/b"},
			"ownerReferences": []any{
				map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": "a", "uid": "2"},
			},
			"managedFields": []any{manager("kubectl-create", createdFields()), manager("my_tool/2.0", createdFields())},
		},
		"spec":   spec,
		"status": map[string]any{"observedGeneration": int64(1)},
	}}
}

// manager is an entry of managedFields.
func manager(name string, fields map[string]any) map[string]any {
	return map[string]any{"manager": name, "operation": "Update", "apiVersion": "registry.cellcast.io/v1alpha1",
		"time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}
}

// createdFields is what an entry speaks of after a create.
func createdFields() map[string]any {
	return map[string]any{
		"f:metadata": map[string]any{
			"f:labels":     map[string]any{".": map[string]any{}, "f:env": map[string]any{}},
			"f:finalizers": map[string]any{".": map[string]any{}, `v:"example.com/a"`: map[string]any{}, `v:"example.com/b"`: map[string]any{}},
		},
		"f:spec": map[string]any{".": map[string]any{}, "f:state": map[string]any{}, "f:trust": map[string]any{".": map[string]any{}, "f:audience": map[string]any{}}},
	}
}

// stateField is what an entry speaks of after a patch of the state.
func stateField() map[string]any {
	return map[string]any{"f:spec": map[string]any{"f:state": map[string]any{}}}
}

// managed is createdFields with one of them replaced; nil removes it.
func managed(value any, path ...string) map[string]any {
	fields := createdFields()
	if value == nil {
		unstructured.RemoveNestedField(fields, path...)
	} else if err := unstructured.SetNestedField(fields, value, path...); err != nil {
		panic(err)
	}
	return fields
}

// entries sets managedFields.
func entries(managers ...any) func(*unstructured.Unstructured) {
	return set(managers, "metadata", "managedFields")
}

// forged is the entry of kubectl with something in it that the API server
// would not write.
func forged(field, value string) func(*unstructured.Unstructured) {
	entry := manager("kubectl-create", createdFields())
	entry[field] = value
	return entries(entry)
}

func set(value any, fields ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, fields...); err != nil {
			panic(err)
		}
	}
}

func remove(fields ...string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, fields...) }
}

func all(changes ...func(*unstructured.Unstructured)) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		for _, change := range changes {
			change(u)
		}
	}
}

const (
	passes = false
	called = true
)

func TestMatchConditions(t *testing.T) {
	paths := map[string]string{"Cluster": cluster.Path, "PlacementPolicy": placementpolicy.Path, "ClusterTarget": clustertarget.Path}
	each := []string{"Cluster", "PlacementPolicy", "ClusterTarget"}
	draining := set("DRAINING", "spec", "state")
	for name, tc := range map[string]struct {
		kinds  []string
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"nothing":              {each, all(), passes},
		"a new version of all": {each, all(set("11", "metadata", "resourceVersion"), set(int64(2), "metadata", "generation")), passes},
		"the state alone": {[]string{"Cluster"}, all(draining, set("11", "metadata", "resourceVersion"), set(int64(2), "metadata", "generation"),
			entries(manager("kubectl-create", managed(nil, "f:spec", "f:state")), manager("my_tool/2.0", createdFields()), manager("kubectl-patch", stateField()))), passes},
		"the state of a row that had none": {[]string{"Cluster"}, remove("spec", "state"), passes},
		"a finalizer removed": {each, all(set([]any{"example.com/b"}, "metadata", "finalizers"),
			entries(manager("kubectl-create", managed(nil, "f:metadata", "f:finalizers", `v:"example.com/a"`)))), passes},
		"all finalizers removed":                    {each, remove("metadata", "finalizers"), passes},
		"all owner references removed":              {each, remove("metadata", "ownerReferences"), passes},
		"managed fields cleared":                    {each, remove("metadata", "managedFields"), passes},
		"the status, which the API server restores": {each, set(int64(2), "status", "observedGeneration"), passes},

		"a label":                      {each, set("dev", "metadata", "labels", "env"), called},
		"a label more":                 {each, set("x", "metadata", "labels", "team"), called},
		"a label removed":              {each, remove("metadata", "labels", "env"), called},
		"all labels removed":           {each, remove("metadata", "labels"), called},
		"an annotation":                {each, set("y", "metadata", "annotations", "note"), called},
		"an annotation more":           {each, set("y", "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"), called},
		"all annotations removed":      {each, remove("metadata", "annotations"), called},
		"a finalizer more":             {each, set([]any{"example.com/a", "example.com/c"}, "metadata", "finalizers"), called},
		"an owner reference more":      {each, set([]any{map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": "a", "uid": "3"}}, "metadata", "ownerReferences"), called},
		"a generateName":               {each, set("x", "metadata", "generateName"), called},
		"another uid":                  {each, set("x", "metadata", "uid"), called},
		"a manager by another name":    {each, entries(manager("ghp0123456789", createdFields())), called},
		"a manager by a long name":     {each, entries(manager(strings.Repeat("x", 17), createdFields())), called},
		"a managed version":            {each, forged("apiVersion", "x"), called},
		"a managed subresource":        {each, forged("subresource", "x"), called},
		"a managed part of a row":      {each, entries(manager("kubectl-create", managed(map[string]any{}, "f:x"))), called},
		"a managed field":              {each, entries(manager("kubectl-create", managed(map[string]any{}, "f:spec", "f:x"))), called},
		"a managed field inside":       {each, entries(manager("kubectl-create", managed(map[string]any{}, "f:metadata", "f:labels", "f:x"))), called},
		"a managed field deep inside":  {each, entries(manager("kubectl-create", managed(map[string]any{}, "f:spec", "f:trust", "f:audience", "f:x"))), called},
		"a managed field in the state": {each, entries(manager("kubectl-patch", map[string]any{"f:spec": map[string]any{"f:state": map[string]any{"f:x": map[string]any{}}}})), called},
		"a field of the spec":          {each, set("x", "spec", "provider"), called},
		"a field of the spec more":     {each, set("x", "spec", "later"), called},
		"a field of the spec less":     {[]string{"Cluster"}, remove("spec", "provider"), called},
		"a field inside the spec":      {[]string{"Cluster"}, set("x", "spec", "trust", "audience"), called},
		"a state where there's none":   {[]string{"PlacementPolicy", "ClusterTarget"}, draining, called},
		"the owner":                    {[]string{"ClusterTarget"}, set("mallory", "spec", "owner", "user"), called},
		"the credential":               {[]string{"ClusterTarget"}, set("b", "spec", "credentialRef", "secretRef", "name"), called},
		"a pull secret more":           {[]string{"ClusterTarget"}, set([]any{"pull", "x"}, "spec", "imagePullSecrets"), called},
		"a subject":                    {[]string{"PlacementPolicy"}, set([]any{map[string]any{"groups": []any{"everyone"}}}, "spec", "subjects"), called},
		"the state and a label":        {[]string{"Cluster"}, all(draining, set("dev", "metadata", "labels", "env")), called},
		"the state and an annotation": {[]string{"Cluster"},
			all(draining, set("x", "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")), called},
		"the state and the endpoint": {[]string{"Cluster"}, all(draining, set("https://x.example.com", "spec", "endpoint")), called},
	} {
		for _, kind := range tc.kinds {
			t.Run(kind+"/"+name, func(t *testing.T) {
				old, updated := row(kind), row(kind)
				tc.change(updated)
				if got := matches(t, configured(t, paths[kind]), admission.Update, updated, old); got != tc.want {
					t.Errorf("called: %v, want %v", got, tc.want)
				}
			})
		}
	}
}

func TestMatchConditionsOnSparseRows(t *testing.T) {
	for path, kind := range map[string]string{cluster.Path: "Cluster", placementpolicy.Path: "PlacementPolicy", clustertarget.Path: "ClusterTarget"} {
		w := configured(t, path)
		if !matches(t, w, admission.Create, row(kind), nil) {
			t.Errorf("%s: a create passes", kind)
		}
		sparse := row(kind)
		for _, field := range []string{"labels", "annotations", "finalizers", "ownerReferences", "managedFields"} {
			remove("metadata", field)(sparse)
		}
		if matches(t, w, admission.Update, sparse, sparse.DeepCopy()) {
			t.Errorf("%s: the update of a sparse row that changes nothing is sent to the webhook", kind)
		}
		for _, field := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
			if !matches(t, w, admission.Update, row(kind), without(row(kind), field)) {
				t.Errorf("%s: the first %s pass", kind, field)
			}
		}
	}
}

// kubeconfigSecret is a Secret as the API server hands it to a webhook.
func kubeconfigSecret(change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "cellcast.io/kubeconfig",
		"metadata": map[string]any{"name": "a", "namespace": "b", "finalizers": []any{"example.com/a"}},
		"data":     map[string]any{"kubeconfig": "eA=="},
	}}
	all(change...)(u)
	return u
}

func TestMatchConditionsOfSecrets(t *testing.T) {
	w := configured(t, kubeconfig.Path)
	opaque := set("Opaque", "type")
	for sentence, tc := range map[string]struct {
		row, old *unstructured.Unstructured
		want     bool
	}{
		"a kubeconfig":                          {kubeconfigSecret(), nil, called},
		"a kubeconfig without data":             {kubeconfigSecret(remove("data")), nil, called},
		"another kubeconfig":                    {kubeconfigSecret(set("eQ==", "data", "kubeconfig")), kubeconfigSecret(), called},
		"a key more":                            {kubeconfigSecret(set("eQ==", "data", "x")), kubeconfigSecret(), called},
		"the first data":                        {kubeconfigSecret(), kubeconfigSecret(remove("data")), called},
		"no data any more":                      {kubeconfigSecret(remove("data")), kubeconfigSecret(), called},
		"a Secret that becomes one":             {kubeconfigSecret(), kubeconfigSecret(opaque), called},
		"one that becomes another":              {kubeconfigSecret(opaque), kubeconfigSecret(), called},
		"a label alone":                         {kubeconfigSecret(set("x", "metadata", "labels", "a")), kubeconfigSecret(), passes},
		"a finalizer removed":                   {kubeconfigSecret(remove("metadata", "finalizers")), kubeconfigSecret(), passes},
		"another Secret":                        {kubeconfigSecret(opaque), nil, passes},
		"another Secret without a type":         {kubeconfigSecret(remove("type")), nil, passes},
		"other data of another Secret":          {kubeconfigSecret(opaque, set("eQ==", "data", "kubeconfig")), kubeconfigSecret(opaque), passes},
		"a type that only begins like it":       {kubeconfigSecret(set("cellcast.io/kubeconfig2", "type")), nil, passes},
		"as much data as a Secret holds, twice": {kubeconfigSecret(set(strings.Repeat("A", 1<<20), "data", "kubeconfig")), kubeconfigSecret(set(strings.Repeat("B", 1<<20), "data", "kubeconfig")), called},
	} {
		t.Run(sentence, func(t *testing.T) {
			operation := admission.Update
			if tc.old == nil {
				operation = admission.Create
			}
			if got := matches(t, w, operation, tc.row, tc.old); got != tc.want {
				t.Errorf("called: %v, want %v", got, tc.want)
			}
		})
	}
}

func without(u *unstructured.Unstructured, field string) *unstructured.Unstructured {
	remove("metadata", field)(u)
	return u
}

// matches evaluates the conditions as an API server does, compiled for the
// oldest that a hub may run on. An error fails the test, for it would refuse
// the request.
func matches(t *testing.T, w admissionregistrationv1.ValidatingWebhook, operation admission.Operation, object, old *unstructured.Unstructured) bool {
	t.Helper()
	conditions := make([]cel.ExpressionAccessor, 0, len(w.MatchConditions))
	for _, c := range w.MatchConditions {
		conditions = append(conditions, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 30)))
	evaluator := compiler.CompileCondition(conditions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
	if errs := evaluator.CompilationErrors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	matcher := matchconditions.NewMatcher(evaluator, w.FailurePolicy, "webhook", "validating", w.Name)

	gvk := object.GroupVersionKind()
	var oldObject runtime.Object
	if old != nil {
		oldObject = old
	}
	attributes := admission.NewAttributesRecord(object, oldObject, gvk, "", object.GetName(),
		schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: w.Rules[0].Resources[0]},
		"", operation, nil, false, &user.DefaultInfo{Name: "operator"})
	versioned, err := admission.NewVersionedAttributes(attributes, gvk, nil)
	if err != nil {
		t.Fatal(err)
	}
	result := matcher.Match(t.Context(), versioned, nil, nil)
	if result.Error != nil {
		t.Fatal(result.Error)
	}
	return result.Matches
}
