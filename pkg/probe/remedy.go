package probe

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"cellcast.io/cellcast/pkg/probe/contract"
	"cellcast.io/cellcast/pkg/shell"
)

// readyz asks the API of the kubeconfig how it is.
const readyz = "kubectl --kubeconfig kubeconfig get --raw /readyz"

// register is how the owner hands in another kubeconfig.
func (p *probe) register(more ...string) string {
	args := []string{"cellcast", "target", "register", p.spec.Name, "-f", "kubeconfig", "--namespace", p.spec.Target.Namespace, "-n", p.spec.Namespace}
	if ref := p.spec.Target.CredentialRef.VaultRef; ref != nil {
		args = append(args, "--vault-path", ref.Path, "--write-kubeconfig", "closed.kubeconfig")
	}
	return command(append(args, more...)...)
}

// kubectl is a command in the target's namespace.
func (p *probe) kubectl(args ...string) string {
	return command(append([]string{"kubectl", "--namespace", p.spec.Target.Namespace}, args...)...)
}

// grant is a command that gives the credential a part of the contract, whole; or
// nothing where it can't be told whom to give it to.
func (p *probe) grant(part contract.Part) string {
	subject, ok := contract.SubjectOf(p.user.Username)
	role := part.Role(p.spec.Target, subject)
	if !ok || role == nil {
		return ""
	}
	return reconcile(role, part.Binding(p.spec.Target, subject))
}

// grantDiscovery lets the credential read the cluster's signing keys.
func (p *probe) grantDiscovery() string {
	subject, ok := contract.SubjectOf(p.user.Username)
	if !ok {
		return ""
	}
	return reconcile(contract.IssuerDiscovery(subject))
}

// reconcile is a command that adds what the RBAC objects grant to what is there,
// and says what was missing. No line of them can end it early: none of their texts
// has a line break.
func reconcile(objects ...runtime.Object) string {
	documents := make([]string, len(objects))
	for i, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return ""
		}
		documents[i] = string(document)
	}
	return fmt.Sprintf("kubectl auth reconcile -f - <<'EOF'\n%sEOF", strings.Join(documents, "---\n"))
}

// command is a command for a shell: what a shell might read otherwise is quoted.
func command(args ...string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = shell.Word(arg)
	}
	return strings.Join(words, " ")
}
