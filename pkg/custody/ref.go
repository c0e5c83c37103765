package custody

import (
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// Ref says whose credential is meant, and where it is.
type Ref struct {
	// Target is the UID of the row, Namespace and Name are the row's.
	Target          types.UID
	Namespace, Name string
	// Source is where its owner keeps the credential.
	Source registryv1alpha1.TargetCredentialRef
	// Owner is whose prefix in Vault it must be under.
	Owner registryv1alpha1.TargetOwner
}

// RefOf is the Ref of a row.
func RefOf(target *registryv1alpha1.ClusterTarget) Ref {
	return Ref{
		Target:    target.UID,
		Namespace: target.Namespace,
		Name:      target.Name,
		Source:    *target.Spec.CredentialRef.DeepCopy(),
		Owner:     target.Spec.Owner,
	}
}

func (r Ref) address() string { return registryv1alpha1.TargetAddress(r.Target) }

// source is what is read, as the audit trail names it. Both are empty where the row
// names none, or two.
func (r Ref) source() (kind, name string) {
	switch s := r.Source; {
	case s.SecretRef != nil && s.VaultRef == nil:
		return kindSecret, r.Namespace + "/" + s.SecretRef.Name
	case s.VaultRef != nil && s.SecretRef == nil:
		return kindVault, s.VaultRef.Path
	default:
		return "", ""
	}
}

const (
	kindSecret = "Secret"
	kindVault  = "Vault"
)
