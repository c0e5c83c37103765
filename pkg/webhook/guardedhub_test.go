package webhook_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/kubeconfig/address"
	"cellcast.io/cellcast/pkg/webhook"
	"cellcast.io/cellcast/pkg/webhook/clustertarget"
	"cellcast.io/cellcast/pkg/webhook/kubeconfig"
	"cellcast.io/cellcast/test/world"
	"cellcast.io/cellcast/test/world/worldtest"
)

// guardedHub is a real API server with the schemas, the webhooks as they are
// configured, and the handlers behind them; no other part of the hub runs.
type guardedHub struct {
	*world.Hub
	admin    *kubernetes.Clientset
	handlers *httptest.Server
}

// fleetOf are the Clusters that the handlers know, by name.
type fleetOf []string

func (f fleetOf) List(labels.Selector) ([]*registry.Cluster, error) {
	var out []*registry.Cluster
	for _, name := range f {
		out = append(out, &registry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return out, nil
}

func underPrefix(owner registry.TargetOwner, path string) error {
	prefix := "users/" + url.PathEscape(owner.User) + "/"
	if owner.Group != "" {
		prefix = "groups/" + url.PathEscape(owner.Group) + "/"
	}
	if !strings.HasPrefix(path, prefix) {
		return errors.New("must be under the owner's prefix")
	}
	return nil
}

func startGuardedHub(t *testing.T) guardedHub {
	t.Helper()
	w := worldtest.Start(t, world.Options{})
	if err := w.Hub.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	hub := guardedHub{Hub: w.Hub}
	var err error
	if hub.admin, err = kubernetes.NewForConfig(w.Hub.Admin.Config()); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	access := webhook.NewAccess(hub.admin.AuthorizationV1().SubjectAccessReviews())
	for path, handler := range map[string]admission.Handler{
		clustertarget.Path:      clustertarget.NewHandler(fleetOf{"prod-eu"}, access, underPrefix, nil),
		clustertarget.OwnerPath: clustertarget.NewOwnerHandler(),
		kubeconfig.Path:         kubeconfig.NewHandler(address.Policy{}, nil),
	} {
		mux.Handle(path, &admission.Webhook{Handler: handler})
	}
	hub.handlers = httptest.NewTLSServer(mux)
	t.Cleanup(hub.handlers.Close)
	hub.configure(t)
	return hub
}

// configure applies the webhooks of what is tested here, pointed at the handlers,
// and returns once the API server asks them.
func (h guardedHub) configure(t *testing.T) {
	t.Helper()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.handlers.Certificate().Raw})
	at := func(c admissionregistrationv1.WebhookClientConfig) admissionregistrationv1.WebhookClientConfig {
		place := h.handlers.URL + *c.Service.Path
		return admissionregistrationv1.WebhookClientConfig{URL: &place, CABundle: bundle}
	}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	read(t, "mutatingwebhookconfiguration.yaml", &mutating)
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig = at(mutating.Webhooks[i].ClientConfig)
	}
	validating := admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cellcast-hub"}}
	for _, path := range []string{clustertarget.Path, kubeconfig.Path} {
		w := configured(t, path)
		w.ClientConfig = at(w.ClientConfig)
		validating.Webhooks = append(validating.Webhooks, w)
	}
	api := h.admin.AdmissionregistrationV1()
	if _, err := api.MutatingWebhookConfigurations().Create(t.Context(), &mutating, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ValidatingWebhookConfigurations().Create(t.Context(), &validating, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	admin := h.as(t, h.Admin.Config())
	until(t, "the API server asks the webhooks", func(ctx context.Context) bool {
		row := brought("never", nil)
		err := admin.Create(ctx, row, client.DryRunAll)
		owner, _, _ := unstructured.NestedString(row.Object, "spec", "owner", "user")
		return err == nil && owner == "admin" && apierrors.IsInvalid(admin.Create(ctx, brought("prod-eu", nil), client.DryRunAll))
	})
}

func until(t *testing.T, what string, check func(context.Context) bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) { return check(ctx), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (h guardedHub) as(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// user is somebody who may write targets in the namespace default, and has these
// rights beside that. It returns once they count.
func (h guardedHub) user(t *testing.T, name string, groups []string, rights ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	u, err := h.User(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	rights = append(rights, rbacv1.PolicyRule{APIGroups: []string{"registry.cellcast.io"}, Resources: []string{"clustertargets"},
		Verbs: []string{"get", "create", "update", "patch", "delete"}})
	roles := h.admin.RbacV1()
	if _, err := roles.Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rights}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := roles.RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, name+" may write targets", func(ctx context.Context) bool {
		review, err := h.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: name, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "default", Verb: "create", Group: "registry.cellcast.io", Resource: "clustertargets",
			}},
		}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed
	})
	return h.as(t, u.Config())
}

func mayGet(secret string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"get"}}
}

// everything is what a Role gives to somebody who has the namespace to himself.
var everything = rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}

// assigns lets somebody assign owners in every namespace. It returns once that
// counts.
func (h guardedHub) assigns(t *testing.T, name string) {
	t.Helper()
	roles, meta := h.admin.RbacV1(), metav1.ObjectMeta{Name: name + "-assigns-owners"}
	if _, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"registry.cellcast.io"}, Resources: []string{"clustertargets"}, Verbs: []string{"assign-owner"},
	}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, name+" may assign owners", func(ctx context.Context) bool {
		review, err := h.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: name, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "assign-owner", Group: "registry.cellcast.io", Resource: "clustertargets",
			}},
		}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed
	})
}

// brought is a row by the Secret hers; a nil owner names nobody.
func brought(name string, owner map[string]any, more ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	spec := map[string]any{"namespace": "payments", "credentialRef": map[string]any{"secretRef": map[string]any{"name": "hers"}}}
	if owner != nil {
		spec["owner"] = owner
	}
	row := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "registry.cellcast.io/v1alpha1", "kind": "ClusterTarget",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec,
	}}
	all(more...)(row)
	return row
}

func merge(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }

// refused fails where the API server didn't refuse for this field.
func refused(t *testing.T, err error, field string) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), field+": ") {
		t.Errorf("got %v, want a refusal of %s", err, field)
	}
}
