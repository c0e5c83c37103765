package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

const (
	accountPrefix = "system:serviceaccount:"
	// discoveryRole is the role, of every cluster, that lets one read its issuer
	// and its signing keys.
	discoveryRole = "system:service-account-issuer-discovery"
	maxSubject    = 512
)

// SubjectOf is whom a binding has to name, by the username that an API server
// knows a credential by. The bool is false where it can't be told: nobody is
// named, or everybody is, or the name isn't one that a manifest should repeat.
func SubjectOf(username string) (rbacv1.Subject, bool) {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if username == "" || username == "system:anonymous" || len(username) > maxSubject || strings.ContainsFunc(username, odd) {
		return rbacv1.Subject{}, false
	}
	if account, ok := strings.CutPrefix(username, accountPrefix); ok {
		namespace, name, whole := strings.Cut(account, ":")
		return Account(namespace, name), whole && namespace != "" && name != ""
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: username}, true
}

// Account is a ServiceAccount as the subject of a binding.
func Account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// Role grants the part, and nothing else, in the target's namespace. It is called
// after the subject, for two hubs may use one namespace, each by a credential of
// its own. nil where the target doesn't use the part.
func (p Part) Role(spec registryv1alpha1.ClusterTargetSpec, subject rbacv1.Subject) *rbacv1.Role {
	rights := p.Rights(spec)
	if len(rights) == 0 {
		return nil
	}
	role := &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: p.name(spec.Namespace, subject), Labels: labels()},
	}
	for _, r := range rights {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{r.Group}, Resources: []string{r.Resource}, ResourceNames: r.Names, Verbs: r.Verbs,
		})
	}
	return role
}

// Binding gives the part's Role to the subject.
func (p Part) Binding(spec registryv1alpha1.ClusterTargetSpec, subject rbacv1.Subject) *rbacv1.RoleBinding {
	name := p.name(spec.Namespace, subject)
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: name, Labels: labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// IssuerDiscovery lets the subject read the cluster's issuer and signing keys. An
// administrator of the cluster has to make it; by default every ServiceAccount has
// the right.
func IssuerDiscovery(subject rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "cellcast-hub-issuer-discovery" + suffix("", subject), Labels: labels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: discoveryRole},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// name is that of the part's Role and of its binding.
func (p Part) name(namespace string, subject rbacv1.Subject) string {
	return p.prefix() + suffix(namespace, subject)
}

func (p Part) prefix() string {
	switch p {
	case Needed:
		return "cellcast-hub"
	case PullSecrets:
		return "cellcast-hub-pull-secrets"
	case Tokens:
		return "cellcast-hub-tokens"
	case LocalQueue:
		return "cellcast-hub-local-queue"
	case Sandboxes:
		return "cellcast-hub-sandboxes"
	default:
		return "cellcast-hub-nothing"
	}
}

// suffix tells subjects apart.
func suffix(namespace string, subject rbacv1.Subject) string {
	switch {
	case subject.Kind != rbacv1.ServiceAccountKind:
		digest := sha256.Sum256([]byte(subject.Name))
		return ":User:" + hex.EncodeToString(digest[:4])
	case subject.Namespace != namespace:
		return ":" + subject.Namespace + ":" + subject.Name
	default:
		return ":" + subject.Name
	}
}

func labels() map[string]string { return map[string]string{"app.kubernetes.io/part-of": "cellcast"} }
