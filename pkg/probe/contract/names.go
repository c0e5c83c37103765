package contract

import (
	"fmt"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/shell"
)

// KubeconfigSecret is what register calls the Secret of a target at the hub, and the
// Role and RoleBinding by which the hub reads it.
func KubeconfigSecret(target string) string { return target + "-kubeconfig" }

// DefaultAccount is the ServiceAccount that register creates on the target when it
// isn't told otherwise.
func DefaultAccount(target string) string { return "cellcast-" + target }

// TokenSecret is the Secret on the target with the account's token.
func TokenSecret(account string) string { return account + "-token" }

// PutKubeconfig is the command that puts FILE into a Secret of the hub, which is
// there or not.
func PutKubeconfig(namespace, name string, there bool) string {
	command := fmt.Sprintf("kubectl create secret generic %s -n %s --type=%s --from-file=%s=FILE", shell.Word(name), shell.Word(namespace),
		registryv1alpha1.SecretTypeKubeconfig, registryv1alpha1.SecretKeyKubeconfig)
	if there {
		command += " --dry-run=client -o yaml | kubectl replace -f -"
	}
	return command
}
