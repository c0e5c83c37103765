package world_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"cellcast.io/cellcast/test/world"
)

// controllersWork tries what a cell's owner finds there because its controllers
// make it.
func controllersWork(t *testing.T, c *world.Cell) {
	ctx, client := t.Context(), kubernetes.NewForConfigOrDie(c.Admin.Config())
	if err := c.EnsureServiceAccount(ctx, "shop", "lasting"); err != nil {
		t.Fatal(err)
	}
	secrets := client.CoreV1().Secrets("shop")
	if _, err := secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "lasting", Annotations: map[string]string{corev1.ServiceAccountNameKey: "lasting"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := ""
	poll(t, "the Secret has the ServiceAccount's token", func() bool {
		secret, err := secrets.Get(ctx, "lasting", metav1.GetOptions{})
		if err == nil {
			token = string(secret.Data[corev1.ServiceAccountTokenKey])
		}
		return token != ""
	})
	if got, err := whoAmI(ctx, bearer(c, token)); err != nil || got != "system:serviceaccount:shop:lasting" {
		t.Errorf("its holder is %q, %v", got, err)
	}
	poll(t, "the role admin has rules", func() bool {
		role, err := client.RbacV1().ClusterRoles().Get(ctx, "admin", metav1.GetOptions{})
		return err == nil && len(role.Rules) > 0
	})
}
