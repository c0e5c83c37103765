package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/bring"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/probe/contract"
	"cellcast.io/cellcast/pkg/shell"
)

const probeHelp = `Have the hub prove that a brought target can be used, and watch it item by item:
that its API can be reached and takes the credential, that the credential may do
what is needed and no more, and that a small pod starts there, proves who it is and
reaches the hub. The pod is deleted, however the probe ends.

What is wrong is shown with what mends it, ready to be copied: mend it, and run
this again. Where a probe is under way already, this shows that one. It's the hub
that probes: interrupting this, or --timeout, only stops looking.

On a terminal the list is drawn in place; elsewhere each item is a line as it ends.
-o json prints the row of the target (ClusterTarget) when the probe has ended; what
it found is in .status.

`

const probeExitCodes = `Exit codes:
  0  the target is Ready
  1  anything that isn't below
  2  wrong use: nothing was asked
  3  Failed or CredentialRejected, which lasts until somebody changes something, or
     the probe was refused
  4  Unreachable or CredentialUnavailable, or the probe goes on after --timeout:
     running this again later can help`

// probeOptions is what the user asks for.
type probeOptions struct {
	door      door.Flags
	timeout   time.Duration
	namespace string
	format    answerFormat
}

func (e Env) probeCommand(program string) *cobra.Command {
	o := &probeOptions{format: answerFormat{format: formatTable, also: []format{formatJSON, formatYAML}}}
	cmd := &cobra.Command{
		Use:   "probe NAME",
		Short: "Have a brought target proven, and see what is missing",
		Long:  probeHelp + probeExitCodes,
		Example: fmt.Sprintf(`  %[1]s probe eu -n payments

  # In a script
  %[1]s probe eu -n payments -o json | jq -r .status.failing`, program),
		Args: cobra.ExactArgs(1),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if o.timeout <= 0 {
				return &usageError{"--timeout must be above zero"}
			}
			err := e.inFormat(o.format.format, e.probe(cmd.Context(), o, args[0]))
			if err == nil {
				return nil
			}
			return e.unavailableInstead(err, cmd.CommandPath())
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", rowNamespaceHelp)
	flags.VarP(&o.format, "output", "o", "how to print the answer")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to watch; the probe goes on without")
	o.door.AddTo(flags)
	return cmd
}

const rowNamespaceHelp = "namespace of the target's row at the hub (default: that of the kubeconfig's context)"

// probe asks for a probe and shows how it goes.
func (e Env) probe(ctx context.Context, o *probeOptions, name string) error {
	hub, err := e.openHub(ctx, o.door, o.timeout)
	if err != nil {
		return err
	}
	if err := hub.hasRows(); err != nil {
		return err
	}
	key, err := hub.targetKey(o.namespace, name)
	if err != nil {
		return err
	}
	row, err := e.watchProbe(ctx, hub, key, o.timeout, o.format.format)
	if row != nil && o.format.whole() {
		if failed := o.format.write(e.Out, row); failed != nil {
			return failed
		}
	}
	return err
}

// stateError says that a target can't be used.
type stateError struct {
	key types.NamespacedName
	row *registryv1alpha1.ClusterTarget
	// at is where the row is.
	at door.Door
}

func (e *stateError) Error() string {
	text := fmt.Sprintf("target %s is %s", e.key, e.row.Status.State)
	if failing := e.row.Status.Failing; failing != "" {
		text += ": " + failing
	}
	return text
}

// report is what to do about a target in this state.
func (e *stateError) report() report {
	r := report{exit: exitRefused, says: e.Error()}
	switch e.row.Status.State {
	case registryv1alpha1.TargetFailed:
		r.next = "Mend what the list says, and run `" + e.probe() + "` again."
	case registryv1alpha1.TargetCredentialRejected:
		r.next, r.run = e.anotherToken()
	case registryv1alpha1.TargetUnreachable:
		r.exit, r.next = exitUnavailable, "The hub tries again by itself. If it lasts, see whether the hub may reach that address: its operator can tell from the hub's log."
	case registryv1alpha1.TargetCredentialUnavailable:
		r.exit, r.next = exitUnavailable, "The hub tries again by itself. If it lasts, do what the item Credential says."
	default: // Ready isn't an error, and Probing isn't an end
		r.exit, r.next = exitUnavailable, "Probe again."
	}
	return r
}

// probe is the command that probes it again.
func (e *stateError) probe() string {
	return probeHint(e.key.Namespace, e.key.Name, e.at.Kubeconfig, e.at.Context)
}

// anotherToken is how another token gets to where the row has its kubeconfig:
// register changes no Secret that it didn't make, and for its own the list has the
// command.
func (e *stateError) anotherToken() (next, run string) {
	const refuses = "The target's API refuses the token"
	const put = refuses + ". Put a kubeconfig of the closed form, FILE, with another into "
	ref := e.row.Spec.CredentialRef
	own := bring.Target{Row: e.key}.SecretName()
	switch {
	case ref.VaultRef != nil:
		return put + "Vault, where MOUNT is the KV engine of the hub:",
			fmt.Sprintf("vault kv patch -mount=MOUNT %s %s=@FILE", shell.Word(ref.VaultRef.Path), shell.Word(ref.VaultRef.Key))
	case ref.SecretRef != nil && ref.SecretRef.Name != own:
		return put + "Secret " + ref.SecretRef.Name + ":",
			kubectlFor(contract.PutKubeconfig(e.key.Namespace, ref.SecretRef.Name, true), e.at.Kubeconfig, e.at.Context)
	}
	at := slices.IndexFunc(e.row.Status.Checks, func(c registryv1alpha1.TargetCheck) bool {
		return c.Result == registryv1alpha1.CheckFailed && strings.Contains(c.Remedy, "cellcast target register ")
	})
	if at < 0 { // the token was refused after the probe
		return refuses + ". This prints the command that registers another:", e.probe()
	}
	next = refuses + ": run the command of the item " + string(e.row.Status.Checks[at].Name)
	if flags := e.hubFlags(); flags != "" {
		return next + ", with this at its end, which names the hub:", flags
	}
	return next + ".", ""
}

// hubFlags are what cellcast target register is to be given for it to go where
// this went.
func (e *stateError) hubFlags() string {
	var flags []string
	if e.at.Kubeconfig != "" {
		flags = append(flags, "--hub-kubeconfig", shell.Word(e.at.Kubeconfig))
	}
	if e.at.Context != "" {
		flags = append(flags, "--hub-context", shell.Word(e.at.Context))
	}
	return strings.Join(flags, " ")
}
