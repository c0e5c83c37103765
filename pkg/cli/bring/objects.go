package bring

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe/contract"
)

const (
	// AnnotationTarget is on everything that registering creates, at the hub and on
	// the target: the namespace/name of the row that it's for. What hasn't got it is
	// somebody else's.
	AnnotationTarget = "registry.cellcast.io/registered-target"
	// AnnotationAccount says at the hub which ServiceAccount was made on the target,
	// as namespace/name, for whoever clears up there.
	AnnotationAccount = "registry.cellcast.io/target-serviceaccount"
)

// Target is what is known about a target before it's registered.
type Target struct {
	// Row is the namespace and the name of the row at the hub.
	Row types.NamespacedName
	// Labels are the row's.
	Labels map[string]string
	// Spec is the row's; where it names no credential, it's the Secret that is made.
	Spec registryv1alpha1.ClusterTargetSpec
	// Hub is the hub's own ServiceAccount.
	Hub types.NamespacedName
	// Account is the ServiceAccount that is made on the target for the hub; empty
	// where the user's own token is registered.
	Account string
}

// SecretName is that of the Secret at the hub, and of the Role and RoleBinding by
// which the hub reads it.
func (t Target) SecretName() string { return contract.KubeconfigSecret(t.Row.Name) }

// TokenSecretName is that of the Secret on the target with the account's token.
func (t Target) TokenSecretName() string { return contract.TokenSecret(t.Account) }

// Needed is what the credential on the target can't be without, in the order in
// which it's created: who the hub is there, what it may do, and its token last.
func (t Target) Needed() []runtime.Object {
	subject := contract.Account(t.Spec.Namespace, t.Account)
	return []runtime.Object{
		&corev1.ServiceAccount{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: t.meta(t.Spec.Namespace, t.Account),
		},
		t.marked(contract.Needed.Role(t.Spec, subject)),
		t.marked(contract.Needed.Binding(t.Spec, subject)),
		&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: t.tokenMeta(),
			Type:       corev1.SecretTypeServiceAccountToken,
		},
	}
}

// Optional is what the credential may do besides, for parts that the target uses:
// without it the target is good for less.
func (t Target) Optional() []runtime.Object {
	subject := contract.Account(t.Spec.Namespace, t.Account)
	var objects []runtime.Object
	for _, part := range contract.Parts() {
		if part == contract.Needed {
			continue
		}
		if role := part.Role(t.Spec, subject); role != nil {
			objects = append(objects, t.marked(role), t.marked(part.Binding(t.Spec, subject)))
		}
	}
	return objects
}

// Secret is the Secret at the hub.
func (t Target) Secret(kubeconfig []byte) *corev1.Secret {
	s := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: t.meta(t.Row.Namespace, t.SecretName()),
		Type:       registryv1alpha1.SecretTypeKubeconfig,
		Data:       map[string][]byte{registryv1alpha1.SecretKeyKubeconfig: kubeconfig},
	}
	t.noteAccount(&s.ObjectMeta)
	return s
}

// Access lets the hub read the Secret, and no other.
func (t Target) Access() []runtime.Object {
	name := t.SecretName()
	return []runtime.Object{
		&rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
			ObjectMeta: t.meta(t.Row.Namespace, name),
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"}}},
		},
		&rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: t.meta(t.Row.Namespace, name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{contract.Account(t.Hub.Namespace, t.Hub.Name)},
		},
	}
}

// ClusterTarget is the row. With it the hub begins to probe, so it comes last.
func (t Target) ClusterTarget() *registryv1alpha1.ClusterTarget {
	row := &registryv1alpha1.ClusterTarget{
		TypeMeta:   metav1.TypeMeta{APIVersion: registryv1alpha1.SchemeGroupVersion.String(), Kind: "ClusterTarget"},
		ObjectMeta: t.meta(t.Row.Namespace, t.Row.Name),
		Spec:       t.Spec,
	}
	for name, value := range t.Labels {
		row.Labels[name] = value
	}
	if row.Spec.CredentialRef.VaultRef == nil {
		row.Spec.CredentialRef.SecretRef = &registryv1alpha1.TargetSecretRef{Name: t.SecretName()}
	} else {
		t.noteAccount(&row.ObjectMeta)
	}
	return row
}

func (t Target) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name,
		Labels:      map[string]string{"app.kubernetes.io/part-of": "cellcast"},
		Annotations: map[string]string{AnnotationTarget: t.Row.String()}}
}

// tokenMeta names the account whose token the cluster shall put there.
func (t Target) tokenMeta() metav1.ObjectMeta {
	meta := t.meta(t.Spec.Namespace, t.TokenSecretName())
	meta.Annotations[corev1.ServiceAccountNameKey] = t.Account
	return meta
}

func (t Target) noteAccount(meta *metav1.ObjectMeta) {
	if t.Account != "" {
		meta.Annotations[AnnotationAccount] = t.Spec.Namespace + "/" + t.Account
	}
}

// object is what the contract makes.
type object interface {
	runtime.Object
	metav1.Object
}

// marked puts the annotation on it.
func (t Target) marked(o object) runtime.Object {
	o.SetAnnotations(map[string]string{AnnotationTarget: t.Row.String()})
	return o
}

// RoleNames are the names of the Roles that the account can have on the target,
// and of their bindings.
func (t Target) RoleNames() []string {
	var names []string
	for _, part := range contract.Parts() {
		names = append(names, part.Binding(t.Spec, contract.Account(t.Spec.Namespace, t.Account)).Name)
	}
	return names
}
