package probe

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"cellcast.io/cellcast/pkg/probe/contract"
	"cellcast.io/cellcast/pkg/shell"
)

// A remedy is a command, or a chain of them, that works as it's printed. One for
// the target names the owner's own kubeconfig there, as register does; one for the
// hub names none, for whoever reads it has the hub's at hand.

// onTarget is a command for the target's cluster.
func onTarget(args ...string) string {
	return command(append([]string{"kubectl", "--kubeconfig", ownKubeconfig}, args...)...)
}

// ownKubeconfig is a file of the owner's, which works on the target.
const ownKubeconfig = "kubeconfig"

// inNamespace is a command in the target's namespace.
func (p *probe) inNamespace(args ...string) string {
	return onTarget(append([]string{"--namespace", p.spec.Target.Namespace}, args...)...)
}

// readyz asks the API how it is.
func readyz() string { return onTarget("get", "--raw", "/readyz") }

// edit is how the owner changes the row by hand, and patch how where it's known to
// what.
func (p *probe) edit() string {
	return command("kubectl", "edit", "clustertarget", p.spec.Name, "-n", p.spec.Namespace)
}

func (p *probe) patch(change string) string {
	return command("kubectl", "patch", "clustertarget", p.spec.Name, "-n", p.spec.Namespace, "--type", "merge", "-p", change)
}

// otherSecret is the Secret that the row names, where register didn't make it and
// so doesn't change it.
func (p *probe) otherSecret() string {
	ref := p.spec.Target.CredentialRef.SecretRef
	if ref == nil || ref.Name == contract.KubeconfigSecret(p.spec.Name) {
		return ""
	}
	return ref.Name
}

// handIn is how the owner hands in another kubeconfig.
func (p *probe) handIn() string {
	name := p.otherSecret()
	if name == "" {
		return p.register()
	}
	return contract.PutKubeconfig(p.spec.Namespace, name, true)
}

func (p *probe) register(more ...string) string {
	args := []string{"cellcast", "target", "register", p.spec.Name, "-f", ownKubeconfig, "--namespace", p.spec.Target.Namespace, "-n", p.spec.Namespace}
	if ref := p.spec.Target.CredentialRef.VaultRef; ref != nil {
		args = append(args, "--vault-path", ref.Path, "--write-kubeconfig", "closed.kubeconfig")
	}
	return command(append(args, more...)...)
}

// renew registers a new token. What register finds in the Secret of an earlier
// token it takes as it is.
func (p *probe) renew() string {
	return p.inNamespace("delete", "secret", p.tokenSecret(), "--ignore-not-found") + " && " + p.register("--create-credential")
}

// tokenSecret is where, on the target, the token is that register creates when it
// isn't told otherwise.
func (p *probe) tokenSecret() string {
	return contract.TokenSecret(contract.DefaultAccount(p.spec.Name))
}

// grant is a command that gives the credential a part of the contract, whole; or
// nothing where it can't be told whom to give it to.
func (p *probe) grant(part contract.Part) string {
	subject, ok := contract.SubjectOf(p.user.Username)
	role := part.Role(p.spec.Target, subject)
	if !ok || role == nil {
		return ""
	}
	return apply(role, part.Binding(p.spec.Target, subject))
}

// grantDiscovery lets the credential read the cluster's signing keys, which an
// administrator of the cluster has to do.
func (p *probe) grantDiscovery() string {
	subject, ok := contract.SubjectOf(p.user.Username)
	if !ok {
		return ""
	}
	binding := contract.IssuerDiscovery(subject)
	who := "--user=" + subject.Name
	if subject.Kind == rbacv1.ServiceAccountKind {
		who = "--serviceaccount=" + subject.Namespace + ":" + subject.Name
	}
	return onTarget("create", "clusterrolebinding", binding.Name, "--clusterrole="+binding.RoleRef.Name, who)
}

// apply is a command that applies the objects. kubectl auth reconcile would say what
// was missing, and crashes (1.37) where a binding is forbidden. No line of them can
// end it early: none of their texts has a line break.
func apply(objects ...runtime.Object) string {
	documents := make([]string, len(objects))
	for i, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return ""
		}
		documents[i] = string(document)
	}
	return onTarget("apply", "--server-side", "--force-conflicts", "-f", "-") + " <<'EOF'\n" + strings.Join(documents, "---\n") + "EOF"
}

// command is a command for a shell: what a shell might read otherwise is quoted.
func command(args ...string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = shell.Word(arg)
	}
	return strings.Join(words, " ")
}
