package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
)

//nolint:gosec // a help text
const credentialKubeconfigHelp = `Print a kubeconfig for a cell that holds no token: it runs cellcast credential,
which must be on the PATH, each time that one is needed. It can be kept, copied
and committed; whoever uses it must be a caller whom the hub knows.

The way to the hub becomes part of it, with the names of files made absolute:
--hub and what belongs to it, also where they come from the environment, or the
kubeconfig of the hub with its context. Other variables that cellcast knows are
read when the plugin runs. Nothing is minted to print it.

`

func (e Env) credentialKubeconfigCommand(program string) *cobra.Command {
	o := &credentialOptions{}
	var namespace string
	var way *pflag.FlagSet
	cmd := &cobra.Command{
		Use:     "kubeconfig --cell CELL --workload WORKLOAD",
		Short:   "Print a kubeconfig that holds no token and runs this plugin",
		Long:    credentialKubeconfigHelp + exitCodes,
		Example: fmt.Sprintf("  %[1]s credential kubeconfig --cell eu-1 --workload payments/api -n payments > cell.kubeconfig", program),
		Args:    cobra.NoArgs,
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
				return &usageError{"--namespace must be the name of a namespace"}
			}
			if err := o.pinDoor(e.Getenv, way); err != nil {
				return err
			}
			if err := o.complete(e.Getenv); err != nil {
				return err
			}
			args, err := o.pluginArgs(way)
			if err != nil {
				return err
			}
			return e.credentialKubeconfig(cmd.Context(), o, namespace, args)
		}),
	}
	way = o.addTo(cmd.Flags())
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "the namespace of the context")
	return cmd
}

// credentialKubeconfig asks where the cell is, which mints nothing.
func (e Env) credentialKubeconfig(ctx context.Context, o *credentialOptions, namespace string, args []string) error {
	hub, err := e.openHub(ctx, o.door, o.timeout)
	if err != nil {
		return err
	}
	cell, err := hub.cellReference(ctx, o.cell, o.spec)
	if err != nil {
		return err
	}
	content, err := kubeconfigfile.PluginKubeconfig(cell, namespace, kubeconfigfile.Plugin{
		Command: "cellcast", Args: args,
		InstallHint: "cellcast isn't on the PATH. It gives this kubeconfig a token for cell " + cell.Name + ": ask the platform team where to get it.",
	})
	if err != nil {
		return err
	}
	_, err = e.Out.Write(content)
	return err
}

// cellReference asks in a dry run for a token of a named cell: the answer says
// where the cell is.
func (h *hub) cellReference(ctx context.Context, cell string, spec cellcastv1alpha1.CellTokenSpec) (cellcastv1alpha1.CellReference, error) {
	question, answer := &cellcastv1alpha1.CellToken{Spec: spec}, &cellcastv1alpha1.CellToken{}
	err := h.ask(ctx, about{cell: cell}, h.rest.Post().Resource("cells").Name(cell).SubResource("token").VersionedParams(strict(true), h.codec).Body(question), answer)
	return answer.Status.Cell, err
}
