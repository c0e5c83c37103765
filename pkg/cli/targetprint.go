package cli

import (
	"fmt"

	"cellcast.io/cellcast/pkg/cli/bring"
	"cellcast.io/cellcast/pkg/cli/registration"
)

const (
	onTargetComment = `# For the target, as yourself (context %q). The cluster puts the token into the
# Secret.
`
	//nolint:gosec // a command without a secret
	secretComment = `# For the hub. The Secret isn't printed, for the kubeconfig is in it; by hand:
#   kubectl create secret generic %s -n %s --type=cellcast.io/kubeconfig --from-file=kubeconfig=FILE
`
	vaultComment = `# For the hub. The kubeconfig is in Vault, at %s.
`
)

// printTarget prints what would be created, and no secret.
func (e Env) printTarget(t bring.Target, source *targetSource) error {
	text := ""
	if t.Account != "" {
		objects, err := registration.YAML(append(t.Needed(), t.Optional()...)...)
		if err != nil {
			return err
		}
		text = fmt.Sprintf(onTargetComment, source.Context) + string(objects) + "---\n"
	}
	objects := append(t.Access(), t.ClusterTarget())
	if vault := t.Spec.CredentialRef.VaultRef; vault != nil {
		objects = objects[len(objects)-1:]
		text += fmt.Sprintf(vaultComment, vault.Path)
	} else {
		text += fmt.Sprintf(secretComment, t.SecretName(), t.Row.Namespace)
	}
	atHub, err := registration.YAML(objects...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(e.Out, text+string(atHub))
	return err
}
