package custody

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/custody/vault"
	"cellcast.io/cellcast/pkg/shell"
)

// secretAdvice is what is said where a Secret doesn't serve.
type secretAdvice struct {
	namespace, name string
	hub             types.NamespacedName
}

func (s secretAdvice) because(reason Reason, cause error, format string, args ...any) *Unavailable {
	return &Unavailable{Reason: reason, what: fmt.Sprintf("Secret %s/%s", s.namespace, s.name), cause: cause,
		advice: fmt.Sprintf("Secret %s/%s ", s.namespace, s.name) + fmt.Sprintf(format, args...)}
}

// create is the command that makes the Secret.
func (s secretAdvice) create() string {
	return fmt.Sprintf("kubectl create secret generic %s -n %s --type=%s --from-file=%s=FILE",
		s.name, s.namespace, registryv1alpha1.SecretTypeKubeconfig, registryv1alpha1.SecretKeyKubeconfig)
}

func (s secretAdvice) unread(err error) *Unavailable {
	switch {
	case apierrors.IsNotFound(err):
		return s.because(ReasonAbsent, err, "doesn't exist. Create it from a kubeconfig of the closed form: %s", s.create())
	case apierrors.IsForbidden(err):
		return s.because(ReasonForbidden, err, "may not be read by the hub. Let its ServiceAccount get this one Secret: "+
			"kubectl create role cellcast-%[1]s -n %[2]s --verb=get --resource=secrets --resource-name=%[1]s && "+
			"kubectl create rolebinding cellcast-%[1]s -n %[2]s --role=cellcast-%[1]s --serviceaccount=%[3]s:%[4]s",
			s.name, s.namespace, s.hub.Namespace, s.hub.Name)
	default:
		return s.because(ReasonUnreachable, err, "can't be read, for the hub's API server didn't serve it. The hub tries again; where that lasts, tell its operator.")
	}
}

func (s secretAdvice) otherType() *Unavailable {
	return s.because(ReasonMalformed, nil, "isn't of type %s, and no other is read. Its type can't be changed, so create another for the kubeconfig and name that: %s",
		registryv1alpha1.SecretTypeKubeconfig, s.create())
}

func (s secretAdvice) otherKeys() *Unavailable {
	return s.because(ReasonMalformed, nil, "must have the key %s and no other. Delete it and create it anew: %s",
		registryv1alpha1.SecretKeyKubeconfig, s.create())
}

func noVault() *Unavailable {
	return &Unavailable{Reason: ReasonNoVault, what: "Vault",
		advice: "The hub is set up with no Vault. Use a secretRef, or ask the hub's operator for --vault-address."}
}

func pathRefused(cause error) *Unavailable {
	return &Unavailable{Reason: ReasonPath, what: "Vault", cause: cause,
		advice: fmt.Sprintf("The path of the vaultRef isn't the owner's: %v. Set spec.credentialRef.vaultRef.path.", cause)}
}

// vaultUnread is what is said where Vault doesn't give the secret.
func vaultUnread(ref *registryv1alpha1.TargetVaultRef, err error) *Unavailable {
	because := func(reason Reason, format string, args ...any) *Unavailable {
		return &Unavailable{Reason: reason, what: "Vault, " + ref.Path, cause: err, advice: fmt.Sprintf(format, args...)}
	}
	switch vault.KindOf(err) {
	case vault.Absent:
		return because(ReasonAbsent, "Vault has no secret at %s, or its newest version was deleted. Put the kubeconfig there: "+
			"vault kv put -mount=MOUNT %s %s=@FILE, with the mount that the hub's operator tells.", ref.Path, shell.Word(ref.Path), keyOf(ref))
	case vault.NoKey:
		return because(ReasonMalformed, "The secret at %s has no text under the key %s. Put the kubeconfig there: "+
			"vault kv patch -mount=MOUNT %s %s=@FILE", ref.Path, keyOf(ref), shell.Word(ref.Path), keyOf(ref))
	case vault.Denied:
		return because(ReasonForbidden, "Vault forbids the hub to read %s. The hub's operator can mend its policy: it needs read below MOUNT/data/users/ and MOUNT/data/groups/.", ref.Path)
	case vault.LoginRefused, vault.NoHubToken:
		return because(ReasonLogin, "The hub can't log in to Vault. Its operator has to look at the hub's log and at the role of the Kubernetes auth method.")
	case vault.Sealed, vault.Unreachable:
		return because(ReasonUnreachable, "Vault is sealed, or doesn't answer. The hub tries again; where that lasts, tell its operator.")
	case vault.Unexpected:
		return because(ReasonUnreachable, "Vault's answer isn't that of a KV version 2 engine. The hub's operator has to look at its log, and at --vault-address and --vault-mount.")
	default:
		return because(ReasonUnreachable, "Vault can't be read. The hub tries again; where that lasts, tell its operator.")
	}
}
