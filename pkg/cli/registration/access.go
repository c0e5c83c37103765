package registration

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// mintName is the name of what bounds and permits minting.
	mintName = "cellcast-hub-mint"
	// discoveryName is the name of the binding that lets the hub read the
	// cell's public keys.
	discoveryName = "cellcast-hub-issuer-discovery"
	// reviewName is the name of what lets the hub ask whose pod shows a token.
	reviewName = "cellcast-hub-pod-identity"
)

// hub is the hub as the cell's RBAC knows it.
func (c Cell) hub() rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: c.Hub.User()}
}

// agent is the agent as the cell's RBAC knows it.
func (c Cell) agent() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: c.Agent.Namespace, Name: c.Agent.Name}
}

// hubAccess is all that the hub may do on the cell, revocable namespaces apart:
// ask tokens for the named ServiceAccounts, read the public keys that reports are
// checked by, and ask whose pod a token is that was shown to it.
func (r Registration) hubAccess() []runtime.Object {
	hub := r.cell.hub()
	objects := []runtime.Object{
		clusterRoleBinding(discoveryName, "system:service-account-issuer-discovery", hub),
		&rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: reviewName, Labels: labels()},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{"authentication.k8s.io"},
				Resources: []string{"tokenreviews"},
				Verbs:     []string{"create"},
			}},
		},
		clusterRoleBinding(reviewName, reviewName, hub),
	}
	for _, ns := range namespaces(r.cell.Mint) {
		objects = append(objects, mintRole(ns, names(r.cell.Mint, ns)), roleBinding(ns, mintName, hub))
	}
	return objects
}

// agentAccess is the agent's ServiceAccount and all that it may do, revocable
// namespaces apart: read the nodes and pods whose requests it adds up, and hold
// the lease of the one replica that reports.
func (r Registration) agentAccess() []runtime.Object {
	agent := r.cell.Agent
	return []runtime.Object{
		namespace(agent.Namespace),
		&corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: agent.Namespace, Name: agent.Name, Labels: labels()},
		},
		&rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: agent.Name, Labels: labels()},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""},
				Resources: []string{"nodes", "pods"},
				Verbs:     []string{"get", "list", "watch"},
			}},
		},
		clusterRoleBinding(agent.Name, agent.Name, r.cell.agent()),
		leaseRole(agent),
		roleBinding(agent.Namespace, agent.Name, r.cell.agent()),
	}
}

// leaseName is the lease of the agent's replicas.
const leaseName = "cellcast-agent"

// leaseRole lets the agent's replicas agree on the one that reports. A create
// can't be held to a name.
func leaseRole(agent types.NamespacedName) *rbacv1.Role {
	leases := func(verbs []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: names, Verbs: verbs}
	}
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: agent.Namespace, Name: agent.Name, Labels: labels()},
		Rules: []rbacv1.PolicyRule{
			leases([]string{"create"}),
			leases([]string{"get", "update", "patch"}, leaseName),
		},
	}
}

func mintRole(ns string, accounts []string) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: mintName, Labels: labels()},
		Rules: []rbacv1.PolicyRule{{
			APIGroups:     []string{""},
			Resources:     []string{"serviceaccounts/token"},
			ResourceNames: accounts,
			Verbs:         []string{"create"},
		}},
	}
}

// roleBinding binds the Role of the same name.
func roleBinding(ns, name string, subject rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{subject},
	}
}

func clusterRoleBinding(name, role string, subject rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// namespaces returns the distinct namespaces of sorted accounts.
func namespaces(accounts []types.NamespacedName) []string {
	var out []string
	for _, sa := range accounts {
		out = append(out, sa.Namespace)
	}
	return slices.Compact(out)
}

// names returns the names of the accounts in a namespace.
func names(accounts []types.NamespacedName, ns string) []string {
	var out []string
	for _, sa := range accounts {
		if sa.Namespace == ns {
			out = append(out, sa.Name)
		}
	}
	return out
}
