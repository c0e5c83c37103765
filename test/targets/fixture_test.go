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
	"k8s.io/client-go/kubernetes"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/probe/contract"
	"cellcast.io/cellcast/pkg/secret"
	"cellcast.io/cellcast/test/world"
)

// account is who the hub acts as on the brought cluster.
const account = "cellcast-hub"

// brought is a namespace on the brought cluster with what its owner has made
// there, and a namespace at the hub where the owner registers it.
type brought struct {
	t *testing.T
	// name is that of both namespaces and of the row.
	name string
	// target is the administrator's client of the brought cluster.
	target kubernetes.Interface
	// owner is dana at the hub: hub for rows and questions, core for the rest.
	owner world.User
	hub   versioned.Interface
	core  kubernetes.Interface
	// token is the registered one.
	token string
}

// bring makes a namespace that meets the contract, with a credential for it, and
// registers nothing.
func bring(t *testing.T) *brought {
	t.Helper()
	require(t)
	b := &brought{t: t, name: unique(t)}
	b.target = clientset(t, acme().Admin)
	ctx := t.Context()
	must(b.target.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.name}}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		_ = b.target.CoreV1().Namespaces().Delete(context.Background(), b.name, metav1.DeleteOptions{})
	})
	must(b.target.CoreV1().ServiceAccounts(b.name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}))(t)
	spec := registryv1alpha1.ClusterTargetSpec{Namespace: b.name}
	for _, part := range []contract.Part{contract.Needed, contract.Tokens} {
		b.grant(part, spec)
	}
	eventually(t, "the namespace has its default ServiceAccount", func(ctx context.Context) error {
		_, err := b.target.CoreV1().ServiceAccounts(b.name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	b.token = must(acme().Token(ctx, b.name, account, time.Hour))(t)

	b.owner = must(hub.Hub.User("dana", "team-a"))(t)
	b.hub, b.core = must(versioned.NewForConfig(b.owner.Config()))(t), clientset(t, b.owner)
	admin := clientset(t, hub.Hub.Admin)
	must(admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.name}}, metav1.CreateOptions{}))(t)
	b.mayOwn(admin, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "team-a"})
	eventually(t, "dana has the namespace", func(ctx context.Context) error {
		_, secrets := b.core.CoreV1().Secrets(b.name).List(ctx, metav1.ListOptions{})
		_, rows := b.hub.RegistryV1alpha1().ClusterTargets(b.name).List(ctx, metav1.ListOptions{})
		return errors.Join(secrets, rows)
	})
	return b
}

// mayOwn gives somebody what whoever has a namespace of the hub has there by the
// role admin, which a hub without controllers doesn't aggregate.
func (b *brought) mayOwn(admin kubernetes.Interface, who rbacv1.Subject) {
	b.t.Helper()
	role := must(admin.RbacV1().Roles(b.name).Create(b.t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "admin-"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}},
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"*"}},
		},
	}, metav1.CreateOptions{}))(b.t)
	for _, given := range []rbacv1.RoleRef{{Kind: "ClusterRole", Name: "cellcast-target-owner"}, {Kind: "Role", Name: role.Name}} {
		given.APIGroup = rbacv1.GroupName
		must(admin.RbacV1().RoleBindings(b.name).Create(b.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "admin-"}, RoleRef: given, Subjects: []rbacv1.Subject{who},
		}, metav1.CreateOptions{}))(b.t)
	}
}

// grant gives the hub's account a part of the contract.
func (b *brought) grant(part contract.Part, spec registryv1alpha1.ClusterTargetSpec) {
	b.t.Helper()
	who := contract.Account(b.name, account)
	must(b.target.RbacV1().Roles(b.name).Create(b.t.Context(), part.Role(spec, who), metav1.CreateOptions{}))(b.t)
	must(b.target.RbacV1().RoleBindings(b.name).Create(b.t.Context(), part.Binding(spec, who), metav1.CreateOptions{}))(b.t)
}

// kubeconfig is the closed one of a token at the brought cluster.
func (b *brought) kubeconfig(token string) []byte {
	b.t.Helper()
	return must(kubeconfig.New(acme().URL, acme().CABundle, secret.New(token)))(b.t).Encode()
}

// keep puts a kubeconfig where the owner keeps it, and lets the hub read it.
func (b *brought) keep(file []byte) {
	b.t.Helper()
	ctx, name := b.t.Context(), b.name+"-kubeconfig"
	must(b.core.CoreV1().Secrets(b.name).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: registryv1alpha1.SecretTypeKubeconfig,
		Data: map[string][]byte{registryv1alpha1.SecretKeyKubeconfig: file},
	}, metav1.CreateOptions{}))(b.t)
	must(b.core.RbacV1().Roles(b.name).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{}))(b.t)
	must(b.core.RbacV1().RoleBindings(b.name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: world.Namespace, Name: world.HubServiceAccount}},
	}, metav1.CreateOptions{}))(b.t)
	b.untilHubMayRead(true, name)
}

// register creates the row, and deletes it with the test.
func (b *brought) register(change func(*registryv1alpha1.ClusterTargetSpec)) *registryv1alpha1.ClusterTarget {
	b.t.Helper()
	row := &registryv1alpha1.ClusterTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.name, Name: b.name},
		Spec: registryv1alpha1.ClusterTargetSpec{
			CredentialRef: registryv1alpha1.TargetCredentialRef{SecretRef: &registryv1alpha1.TargetSecretRef{Name: b.name + "-kubeconfig"}},
			Namespace:     b.name,
		},
	}
	if change != nil {
		change(&row.Spec)
	}
	row = must(b.hub.RegistryV1alpha1().ClusterTargets(b.name).Create(b.t.Context(), row, metav1.CreateOptions{}))(b.t)
	b.t.Cleanup(func() {
		_ = b.hub.RegistryV1alpha1().ClusterTargets(b.name).Delete(context.Background(), b.name, metav1.DeleteOptions{})
	})
	return row
}

// row is the row as it is now.
func (b *brought) row() *registryv1alpha1.ClusterTarget {
	b.t.Helper()
	return must(b.hub.RegistryV1alpha1().ClusterTargets(b.name).Get(b.t.Context(), b.name, metav1.GetOptions{}))(b.t)
}

// awaits returns the row once it's in the state.
func (b *brought) awaits(state registryv1alpha1.TargetState) (row *registryv1alpha1.ClusterTarget) {
	b.t.Helper()
	eventually(b.t, fmt.Sprintf("target %s is %s", b.name, state), func(ctx context.Context) error {
		var err error
		if row, err = b.hub.RegistryV1alpha1().ClusterTargets(b.name).Get(ctx, b.name, metav1.GetOptions{}); err != nil {
			return err
		}
		if row.Status.State != state {
			return fmt.Errorf("it's %q: %s\n%+v", row.Status.State, row.Status.Failing, row.Status.Checks)
		}
		return nil
	})
	return row
}

// check is an item of the last probe.
func check(t *testing.T, row *registryv1alpha1.ClusterTarget, name registryv1alpha1.TargetCheckName) registryv1alpha1.TargetCheck {
	t.Helper()
	for _, c := range row.Status.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no item %s in %+v", name, row.Status.Checks)
	return registryv1alpha1.TargetCheck{}
}

func clientset(t *testing.T, user world.User) kubernetes.Interface {
	t.Helper()
	return must(kubernetes.NewForConfig(user.Config()))(t)
}
