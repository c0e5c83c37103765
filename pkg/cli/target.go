package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"cellcast.io/cellcast/pkg/shell"
)

const targetHelp = `A brought target is a namespace of your own, on a cluster that the fleet doesn't
manage. You register it with a kubeconfig, the hub proves item by item that it can
be used, and from then on you get short-lived tokens for it. Once there is dispatch,
you can launch onto it, too.

`

const targetExitCodes = `Exit codes:
  0  done
  1  anything that isn't below, such as a file that can't be written
  2  wrong use, or a kubeconfig that can't be registered as it is
  3  refused, and asking again won't change that: a permission or the target has to
     change
  4  not now: the hub can't be reached, or the target isn't Ready or is being deleted
  5  the target is Ready and issued no token, or can't be reached for one`

func (e Env) targetCommand(program string) *cobra.Command {
	target := &cobra.Command{
		Use:   "target",
		Short: "Register a namespace of your own, and get tokens for it",
		Long:  targetHelp + "Next: " + program + " target register --help",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	target.AddCommand(e.targetRegisterCommand(program), e.targetUnregisterCommand(program), e.targetTokenCommand(program))
	return target
}

// probeHint is the command that proves a target.
func probeHint(namespace, name, kubeconfig, context string) string {
	return kubectlFor(fmt.Sprintf("kubectl cellcast probe %s -n %s", name, namespace), kubeconfig, context)
}

// kubectlFor is a kubectl command for the cluster that a kubeconfig and a context of
// it name; with neither, for the one that kubectl takes by itself.
func kubectlFor(command, kubeconfig, context string) string {
	if kubeconfig != "" {
		command += " --kubeconfig " + shell.Word(kubeconfig)
	}
	if context != "" {
		command += " --context " + shell.Word(context)
	}
	return command
}
