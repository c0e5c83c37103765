package targets

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/secret"
	"cellcast.io/cellcast/test/world"
)

// dead is how many targets are dead.
const dead = 100

// A target is Ready as soon among a hundred that can't be reached, half of which
// take a connection and never say a word, as it is alone.
func TestAHundredDeadTargetsDontSlowAHealthyOne(t *testing.T) {
	requireNode(t)
	alone := readyIn(t, "alone")
	b := bring(t)
	hole := must(net.Listen("tcp", "127.0.0.1:0"))(t) // nobody accepts
	t.Cleanup(func() { _ = hole.Close() })
	for kind, server := range map[string]string{"closed": closedPort(t, "127.0.0.1"), "hole": hole.Addr().String()} {
		b.keepsAs(kind, must(kubeconfig.New("https://"+server, acme().CABundle, secret.New(b.token)))(t).Encode())
		for i := range dead / 2 {
			row := b.ownedBy(fmt.Sprintf("%s-%d", kind, i), registryv1alpha1.TargetOwner{Group: "team-a"})
			row.Spec.CredentialRef.SecretRef.Name = kind
			must(b.hub.RegistryV1alpha1().ClusterTargets(b.name).Create(t.Context(), row, metav1.CreateOptions{}))(t)
		}
	}
	t.Cleanup(func() { b.clears() })
	patiently(t, 2*time.Minute, "all dead ones are being probed, or were", func(ctx context.Context) error {
		rows, err := b.hub.RegistryV1alpha1().ClusterTargets(b.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		waiting := slices.DeleteFunc(rows.Items, func(row registryv1alpha1.ClusterTarget) bool { return row.Status.Run != nil })
		if len(waiting) > 0 {
			return fmt.Errorf("%d aren't", len(waiting))
		}
		return nil
	})
	among := readyIn(t, "among dead ones")
	t.Logf("Ready after %s alone, and after %s among %d dead targets", alone.Round(10*time.Millisecond), among.Round(10*time.Millisecond), dead)
	if among > alone+30*time.Second { // no factor: one pod may start several times slower than another
		t.Errorf("a healthy target is Ready after %s among dead ones, and after %s alone", among, alone)
	}
}

// readyIn is how long it takes from the creation of a row until it's Ready.
func readyIn(t *testing.T, sentence string) (took time.Duration) {
	t.Helper()
	if !t.Run(sentence, func(t *testing.T) {
		b := bring(t)
		b.keep(b.kubeconfig(b.token))
		began := time.Now()
		b.register(nil)
		inState(t, b.first(), registryv1alpha1.TargetReady)
		took = time.Since(began)
	}) {
		t.FailNow()
	}
	return took
}

// keepsAs keeps a kubeconfig under this name, and lets the hub read it.
func (b *brought) keepsAs(name string, file []byte) {
	b.t.Helper()
	ctx, one := b.t.Context(), metav1.ObjectMeta{Name: name}
	must(b.core.CoreV1().Secrets(b.name).Create(ctx, &corev1.Secret{
		ObjectMeta: one, Type: registryv1alpha1.SecretTypeKubeconfig, Data: map[string][]byte{registryv1alpha1.SecretKeyKubeconfig: file},
	}, metav1.CreateOptions{}))(b.t)
	must(b.core.RbacV1().Roles(b.name).Create(ctx, &rbacv1.Role{ObjectMeta: one, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{}))(b.t)
	must(b.core.RbacV1().RoleBindings(b.name).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: one, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: world.Namespace, Name: world.HubServiceAccount}},
	}, metav1.CreateOptions{}))(b.t)
	b.untilHubMayRead(true, name)
}

// clears deletes every row of the namespace at once, whose targets are all away,
// and sees that they go as fast as one.
func (b *brought) clears() {
	b.t.Helper()
	ctx, began := context.Background(), time.Now()
	rows := hub.Admin.RegistryV1alpha1().ClusterTargets(b.name)
	if err := rows.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		b.t.Error(err)
	}
	if err := hub.Eventually(ctx, "the dead rows are gone", func(ctx context.Context) error {
		left, err := rows.List(ctx, metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d are left", len(left.Items))
		}
		return err
	}); err != nil {
		b.t.Error(err)
	}
	b.t.Logf("%d dead targets were let go of in %s", dead, time.Since(began).Round(10*time.Millisecond))
}
