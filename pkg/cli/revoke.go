package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
)

const revokeHelp = `End a revocable credential now instead of at its time. The caller must be the one
whom it was issued to. To revoke what has ended already is no error.

Name the credential by the kubeconfig that holds it, which is removed then; by
the answer of place -o json in a file (-f, or - for the standard input); or by
its cell, its namespace, and its revocation nonce in a file. Keep the nonce out of
logs: whoever shares your subject could revoke by it. The way to the hub is found
as ever; the kubeconfig FILE has no part in it.

The cell refuses the token within 15 seconds: for that long it may remember that
it has accepted it. A credential can be revoked where its policy makes it so
(spec.credential.revocable). Exit code 4: the hub or the cell can't be reached;
the credential is still good until its time.

`

// revokeOptions is what the user asks for.
type revokeOptions struct {
	door       door.Flags
	timeout    time.Duration
	kubeconfig string
	answer     string
	cell       string
	namespace  string
	nonceFile  string
}

func (e Env) revokeCommand(program string) *cobra.Command {
	o := &revokeOptions{}
	cmd := &cobra.Command{
		Use:   "revoke [FILE]",
		Short: "End a credential before its time",
		Long:  revokeHelp + exitCodes,
		Example: fmt.Sprintf(`  # At the end of a job
  %[1]s revoke cell.kubeconfig

  # By the answer, or by what was kept of it
  %[1]s revoke -f placement.json
  %[1]s revoke --cell eu-1 --namespace payments --nonce-file nonce`, program),
		Args: cobra.MaximumNArgs(1),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			return e.revoke(cmd.Context(), o, cmd.CommandPath())
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.answer, "filename", "f", "", "file with the answer of place -o json; - is the standard input")
	flags.StringVar(&o.cell, "cell", "", "the credential's cell; goes with --namespace and --nonce-file")
	flags.StringVar(&o.namespace, "namespace", "", "the credential's namespace")
	flags.StringVar(&o.nonceFile, "nonce-file", "", "file with the credential's revocation nonce; - is the standard input")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, timeoutHelp)
	o.door.AddTo(flags)
	return cmd
}

// complete checks that the credential is named, and in one way.
func (o *revokeOptions) complete(args []string) error {
	ways := 0
	if len(args) == 1 {
		o.kubeconfig = args[0]
		ways++
	}
	if o.answer != "" {
		ways++
	}
	parts := o.cell != "" || o.namespace != "" || o.nonceFile != ""
	if parts {
		ways++
	}
	switch {
	case ways != 1 || len(args) == 1 && o.kubeconfig == "":
		return &usageError{"which credential? Name it in one way: the kubeconfig FILE, -f ANSWER, or --cell with --namespace and --nonce-file"}
	case parts && (o.cell == "" || o.namespace == "" || o.nonceFile == ""):
		return &usageError{"--cell, --namespace and --nonce-file go together"}
	case o.timeout <= 0:
		return &usageError{"--timeout must be above zero"}
	default:
		return nil
	}
}

// revoke asks, says what became of it, and removes a kubeconfig that is of no
// more use.
func (e Env) revoke(ctx context.Context, o *revokeOptions, command string) error {
	which, err := o.which()
	if err != nil {
		return err
	}
	hub, err := e.openHub(ctx, o.door, o.timeout)
	if err != nil {
		return err
	}
	answer, err := hub.revoke(ctx, which.Cell, cellcastv1alpha1.CellRevocationSpec{
		Namespace: which.Namespace, RevocationNonce: which.RevocationNonce,
	})
	if err != nil {
		return e.unavailableInstead(err, command)
	}
	useless, err := e.sayRevoked(which, answer.Status.Result)
	if err != nil || o.kubeconfig == "" {
		return err
	}
	return e.dispose(o.kubeconfig, useless)
}

// unavailableInstead says why not. That a cell can't be reached has a code of its
// own where a credential was to be had from it; here it's an unavailability.
func (e Env) unavailableInstead(err error, command string) error {
	r := explain(err, e.Now())
	if r.exit != exitNoCredential {
		return err
	}
	e.tell(r, command)
	return &exitStatus{exitUnavailable}
}

// sayRevoked says what became of the credential, and whether it's certain that
// it has ended.
func (e Env) sayRevoked(which kubeconfigfile.Revocation, result cellcastv1alpha1.RevocationResult) (certain bool, err error) {
	what := "credential for namespace " + which.Namespace + " of cell " + which.Cell
	switch result {
	case cellcastv1alpha1.RevocationRevoked:
		_, err = fmt.Fprintf(e.Out, "Revoked the %s: the cell refuses it within 15 seconds.\n", what)
		return true, err
	case cellcastv1alpha1.RevocationNotFound:
		_, err = fmt.Fprintf(e.Out, "Not found: you have no such %s that is alive. It has ended already, was issued to another caller, or the hub may not end it any more.\n", what)
		return certainlyEnded(result, which.RevokesAt.Time, e.Now()), err
	default:
		return false, errNoResult
	}
}

// dispose removes a kubeconfig whose credential has ended for certain.
func (e Env) dispose(path string, useless bool) error {
	if !useless {
		e.say("Left %s as it is: its credential may be alive.", path)
		return nil
	}
	if _, err := kubeconfigfile.Remove(path); err != nil {
		e.say("Warning: the credential has ended, and its file isn't removed: %v", err)
		return nil
	}
	e.say("Removed %s.", path)
	return nil
}
