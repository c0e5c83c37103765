package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/bring"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/terminal"
	"cellcast.io/cellcast/pkg/shell"
)

const targetUnregisterHelp = `Take a target away from the hub: the row, the Secret with its kubeconfig, and the
Role by which the hub reads it. What cellcast target register didn't make is left.

The hub ends what it has of the target before the row goes; where the target can't
be reached, it goes all the same. Nothing is deleted on the target, for the hub's
rights there end with the credential: what remains is printed, with the commands.

`

// targetUnregisterOptions is what the user asks for.
type targetUnregisterOptions struct {
	door      door.Flags
	timeout   time.Duration
	namespace string
}

func (e Env) targetUnregisterCommand(program string) *cobra.Command {
	o := &targetUnregisterOptions{}
	cmd := &cobra.Command{
		Use:     "unregister NAME",
		Short:   "Take a target away from the hub",
		Long:    targetUnregisterHelp + targetExitCodes,
		Example: fmt.Sprintf("  %[1]s target unregister eu -n payments", program),
		Args:    cobra.ExactArgs(1),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if o.timeout <= 0 {
				return &usageError{"--timeout must be above zero"}
			}
			return e.unregisterTarget(cmd.Context(), o, args[0])
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", rowNamespaceHelp)
	flags.StringVar(&o.door.Kubeconfig, "kubeconfig", "", "kubeconfig of the hub (default $KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&o.door.Context, "context", "", "context of that kubeconfig")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long each request, and the hub with its part, may take")
	return cmd
}

// unregisterTarget deletes the row and then what the hub reads the credential by:
// the hub may still need that for its own part.
func (e Env) unregisterTarget(ctx context.Context, o *targetUnregisterOptions, name string) error {
	at, err := e.openRows(ctx, o.door)
	if err != nil {
		return err
	}
	namespace := o.namespace
	if namespace == "" {
		namespace = at.Namespace
	}
	t := bring.Target{Row: types.NamespacedName{Namespace: namespace, Name: name}}
	hub, err := e.siteOf("the hub", at.Config, t.Row.String(), o.timeout)
	if err != nil {
		return err
	}
	left, err := leftovers(ctx, hub, t)
	if err != nil {
		return err
	}
	if !left.found {
		return &usageError{fmt.Sprintf("the hub has no target %s, and nothing of one; %s lists those that you may see", t.Row,
			kubectlFor("kubectl get clustertargets -A", o.door.Kubeconfig, o.door.Context))}
	}
	err = e.deleteRow(ctx, hub, t, o.timeout)
	switch {
	case errors.Is(err, bring.ErrForeign):
		return &siteError{err: err, exit: exitRefused, next: "Delete it where it's declared, or by hand; its Secret and the Role that lets the hub read it go the same way:",
			run: kubectlFor("kubectl delete clustertarget "+shell.Word(name)+" -n "+shell.Word(namespace), o.door.Kubeconfig, o.door.Context)}
	case err != nil:
		return err
	}
	for _, part := range readBy() {
		outcome, err := hub.Delete(ctx, part.resource, namespace, t.SecretName())
		switch {
		case errors.Is(err, bring.ErrForeign):
			e.say("Left %s %s in namespace %s: cellcast target register didn't make it.", part.kind, t.SecretName(), namespace)
		case err != nil:
			return err
		case outcome == bring.Deleted:
			e.say("Deleted %s %s in namespace %s at the hub.", part.kind, t.SecretName(), namespace)
		}
	}
	_, err = fmt.Fprint(e.Out, left.advice())
	return err
}

// readPart is a kind of object and its resource.
type readPart struct {
	kind     string
	resource schema.GroupVersionResource
}

// readBy is what the hub reads the credential by, in the order in which it goes.
func readBy() []readPart {
	return []readPart{
		{"RoleBinding", rbacv1.SchemeGroupVersion.WithResource("rolebindings")},
		{"Role", rbacv1.SchemeGroupVersion.WithResource("roles")},
		{"Secret", corev1.SchemeGroupVersion.WithResource("secrets")},
	}
}

func rowsResource() schema.GroupVersionResource {
	return registryv1alpha1.SchemeGroupVersion.WithResource("clustertargets")
}

// deleteRow deletes the row, and waits for the hub to have done its part.
func (e Env) deleteRow(ctx context.Context, hub *bring.Site, t bring.Target, timeout time.Duration) error {
	outcome, err := hub.Delete(ctx, rowsResource(), t.Row.Namespace, t.Row.Name)
	if err != nil || outcome == bring.Absent {
		return err
	}
	for deadline := e.Now().Add(timeout); ; {
		row, err := hub.Get(ctx, rowsResource(), t.Row.Namespace, t.Row.Name)
		if err != nil {
			return err
		}
		if row == nil {
			e.say("Deleted ClusterTarget %s in namespace %s at the hub.", t.Row.Name, t.Row.Namespace)
			return nil
		}
		if deadline.Sub(e.Now()) <= probePoll {
			e.say("Warning: the hub hasn't let go of ClusterTarget %s in %s; it will when it runs. The credential is taken away from it now.", t.Row.Name, timeout)
			return nil
		}
		if err := e.sleep(ctx, probePoll); err != nil {
			return err
		}
	}
}

// remains is what unregistering leaves elsewhere.
type remains struct {
	// found says that the hub has anything of the target.
	found bool
	// account is namespace/name of the ServiceAccount that was made on the target,
	// and vault the path of the kubeconfig in Vault.
	account, vault string
}

// leftovers looks before anything is deleted.
func leftovers(ctx context.Context, hub *bring.Site, t bring.Target) (remains, error) {
	var r remains
	row, err := hub.Get(ctx, rowsResource(), t.Row.Namespace, t.Row.Name)
	if err != nil {
		return r, err
	}
	objects := []*unstructured.Unstructured{row}
	for _, part := range readBy() {
		object, err := hub.Get(ctx, part.resource, t.Row.Namespace, t.SecretName())
		if err != nil {
			return r, err
		}
		objects = append(objects, object)
	}
	for _, object := range objects {
		if object == nil {
			continue
		}
		r.found = r.found || hub.Owns(object) || object == row
		if account := object.GetAnnotations()[bring.AnnotationAccount]; hub.Owns(object) && account != "" {
			r.account = account
		}
	}
	if row != nil {
		r.vault, _, _ = unstructured.NestedString(row.Object, "spec", "credentialRef", "vaultRef", "path")
	}
	return r, nil
}

// advice says what remains, and how to end it.
func (r remains) advice() string {
	var out strings.Builder
	if r.vault != "" {
		fmt.Fprintf(&out, "The kubeconfig remains in Vault:\n  vault kv metadata delete -mount=MOUNT %s\n", shell.Word(terminal.Printable(r.vault)))
	}
	namespace, account, _ := strings.Cut(r.account, "/")
	// An annotation can hold anything, and this is to be pasted to a shell.
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(account)) > 0 {
		out.WriteString("The token that was registered isn't revoked by this: delete its Secret or its ServiceAccount on the target, if nobody else uses it.\n")
		return out.String()
	}
	t := bring.Target{Account: account, Spec: registryv1alpha1.ClusterTargetSpec{Namespace: namespace}}
	fmt.Fprintf(&out, `On the target nothing was deleted. Unless you did, ServiceAccount %[2]s is still there in namespace %[1]s, with its Roles and a token that works.
Where the file kubeconfig is your own for the target:
  kubectl --kubeconfig kubeconfig delete -n %[1]s --ignore-not-found serviceaccount %[2]s
  kubectl --kubeconfig kubeconfig delete -n %[1]s --ignore-not-found role,rolebinding %[3]s
`, namespace, account, strings.Join(t.RoleNames(), " "))
	return out.String()
}
