package targets

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/world"
)

// tenant is a namespace of dana's at the hub, for targets that the test fakes:
// nothing of it is on a real cluster. The hub may read what she keeps there.
type tenant struct{ *brought }

func newTenant(t *testing.T) tenant {
	t.Helper()
	require(t)
	n := tenant{&brought{t: t, name: unique(t)}}
	n.owner = must(hub.Hub.User("dana", "team-a"))(t)
	config := n.owner.Config()
	config.WarningHandler = rest.NoWarnings{}
	n.hub, n.core = must(versioned.NewForConfig(config))(t), clientset(t, n.owner)
	admin := clientset(t, hub.Hub.Admin)
	ctx := t.Context()
	must(admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.name}}, metav1.CreateOptions{}))(t)
	n.mayOwn(admin, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "team-a"})
	eventually(t, "dana has the namespace", func(ctx context.Context) error {
		_, secrets := n.core.CoreV1().Secrets(n.name).List(ctx, metav1.ListOptions{})
		_, rows := n.hub.RegistryV1alpha1().ClusterTargets(n.name).List(ctx, metav1.ListOptions{})
		return errors.Join(secrets, rows)
	})
	must(n.core.RbacV1().Roles(n.name).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeconfigs"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{}))(t)
	must(n.core.RbacV1().RoleBindings(n.name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeconfigs"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "kubeconfigs"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: world.Namespace, Name: world.HubServiceAccount}},
	}, metav1.CreateOptions{}))(t)
	n.untilHubMayRead(true, "any")
	return n
}

// kept is a Secret with the kubeconfig.
func (n tenant) kept(name string, file []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name}, Type: registryv1alpha1.SecretTypeKubeconfig,
		Data: map[string][]byte{registryv1alpha1.SecretKeyKubeconfig: file},
	}
}

// registers keeps the kubeconfig and creates the row, both of this name.
func (n tenant) registers(name string, file []byte) {
	n.t.Helper()
	must(n.core.CoreV1().Secrets(n.name).Create(n.t.Context(), n.kept(name, file), metav1.CreateOptions{}))(n.t)
	must(n.hub.RegistryV1alpha1().ClusterTargets(n.name).Create(n.t.Context(), &registryv1alpha1.ClusterTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name},
		Spec: registryv1alpha1.ClusterTargetSpec{
			CredentialRef: registryv1alpha1.TargetCredentialRef{SecretRef: &registryv1alpha1.TargetSecretRef{Name: name}},
			Namespace:     team,
		},
	}, metav1.CreateOptions{}))(n.t)
	n.t.Cleanup(func() {
		_ = n.hub.RegistryV1alpha1().ClusterTargets(n.name).Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// probes asks for a run and returns its id.
func (n tenant) probes(name string) string {
	n.t.Helper()
	answer := &cellcastv1alpha1.TargetProbe{}
	err := n.hub.CellcastV1alpha1().RESTClient().Post().Namespace(n.name).Resource("clustertargets").Name(name).SubResource("probe").
		Body(&cellcastv1alpha1.TargetProbe{}).Do(n.t.Context()).Into(answer)
	if err != nil {
		n.t.Fatal(err)
	}
	return answer.Status.Run
}

// ended returns the row once its run has: the run of this id, or any where it's
// empty.
func (n tenant) ended(name, run string) (row *registryv1alpha1.ClusterTarget) {
	n.t.Helper()
	within(n.t, 4*time.Minute, fmt.Sprintf("the probe of %s has ended", name), func(ctx context.Context) error {
		var err error
		if row, err = n.hub.RegistryV1alpha1().ClusterTargets(n.name).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		r := row.Status.Run
		if r == nil || r.FinishedAt == nil || run != "" && r.ID != run {
			return fmt.Errorf("it's %+v, at %d items", r, len(row.Status.Checks))
		}
		return nil
	})
	return row
}

// awaitCanary returns the next canary that the hub makes on the target.
func (f *fakeTarget) awaitCanary(t *testing.T) *corev1.Pod {
	t.Helper()
	select {
	case pod := <-f.canaries:
		return pod
	case <-time.After(2 * time.Minute):
		t.Fatal("no canary was made")
		return nil
	}
}

// lives has the canaries of the target post as real ones do, each after wait. It
// ends with the test.
func (f *fakeTarget) lives(t *testing.T, wait func()) {
	p := newPoster(t, "127.0.0.1")
	go func() {
		for {
			select {
			case pod := <-f.canaries:
				wait()
				token := f.token(t, pod)
				_ = poll(t.Context(), time.Minute, func(ctx context.Context) error {
					return p.takes(ctx, pod.Name, token)
				})
			case <-t.Context().Done():
				return
			}
		}
	}()
}

// within waits until check returns nil.
func within(t *testing.T, most time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	if err := poll(t.Context(), most, check); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func poll(ctx context.Context, most time.Duration, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, most, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w; last: %w", err, last)
	}
	return nil
}
