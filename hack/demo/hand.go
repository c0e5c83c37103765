package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"cellcast.io/cellcast/test/world"
)

// developer is the user whom the demo shows: at the hub a member of developers,
// who may create placements, and the owner of the namespace team-a.
const developer = "dana"

// hand puts what a person needs to use the fleet where the README says it is.
func hand(ctx context.Context, w *world.World) error {
	hub, err := kubernetes.NewForConfig(w.Hub.Admin.Config())
	if err != nil {
		return err
	}
	if _, err := hub.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "developers-place"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"cellcast.io"}, Resources: []string{"placements"}, Verbs: []string{"create"}}},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("letting developers place: %w", err)
	}
	if _, err := hub.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "developers-place"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "developers-place"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "developers"}},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("letting developers place: %w", err)
	}
	user, err := w.Hub.User(developer, "developers")
	if err != nil {
		return err
	}
	errs := []error{
		link(w.Hub.Admin.Kubeconfig, "hub.kubeconfig"),
		link(user.Kubeconfig, developer+".kubeconfig"),
		link(w.Hub.Server.CAFile, "hub-ca.pem"),
		write("hub.url", []byte(w.Hub.Server.URL)),
		write("etcd.url", []byte(w.EtcdURL)),
	}
	for _, c := range cells {
		cell := w.Cell(c.name)
		errs = append(errs,
			link(cell.Admin.Kubeconfig, filepath.Join("cells", cell.Name+".kubeconfig")),
			write(filepath.Join("cells", cell.Name+".url"), []byte(cell.URL)),
			write(filepath.Join("cells", cell.Name+"-ca.pem"), cell.CABundle))
	}
	return errors.Join(errs...)
}

func link(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return write(to, content)
}

// allow lets the ServiceAccounts deployer of these namespaces deploy in the
// namespace of the cell.
func allow(ctx context.Context, cell *world.Cell, namespace string, accounts []string) error {
	client, err := kubernetes.NewForConfig(cell.Admin.Config())
	if err != nil {
		return err
	}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "deployer"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"", "apps"},
			Resources: []string{"deployments", "configmaps", "services"},
			Verbs:     []string{"get", "list", "create", "update", "patch"},
		}},
	}
	if _, err := client.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("role of deployer in %s on %s: %w", namespace, cell.Name, err)
	}
	var deployers []rbacv1.Subject
	for _, account := range accounts {
		deployers = append(deployers, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account, Name: "deployer"})
	}
	_, err = client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deployer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "deployer"},
		Subjects:   deployers,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("binding of deployer in %s on %s: %w", namespace, cell.Name, err)
	}
	return nil
}
