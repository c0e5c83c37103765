package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
)

const placeHelp = `Ask the hub where a workload goes, and for a short-lived credential to deploy it
there.

A credential is asked for where it has somewhere to go, and goes there alone:
into FILE with --write-kubeconfig FILE, else into the answer with -o json or
-o yaml. Otherwise the hub decides and mints nothing, as with --dry-run: a token
that nobody holds would only be one more token.

With --write-kubeconfig, FILE holds this run's credential afterwards or, when the
run fails, none: an earlier one is removed, for it's for a cell that this run
didn't choose. FILE must be new, empty, or written by cellcast before.

-o name prints the cell as kubectl names objects, cell.cellcast.io/NAME; in a
shell ${cell##*/} is the bare name.

`

// placeOptions is what the user asks for.
type placeOptions struct {
	door            door.Flags
	timeout         time.Duration
	workload        string
	ttl             time.Duration
	dark            bool
	requests        map[string]string
	explain         bool
	dryRun          string
	format          format
	writeKubeconfig string
}

func (e Env) placeCommand(program string) *cobra.Command {
	o := &placeOptions{format: formatTable}
	cmd := &cobra.Command{
		Use:   "place WORKLOAD",
		Short: "Ask which cell a workload goes to, and for a credential to deploy it there",
		Long:  placeHelp + exitCodes,
		Example: fmt.Sprintf(`  # Which cell would it be, and why not the others?
  %[1]s payments/api --explain

  # Deploy with the credential, which lives for some minutes
  %[1]s payments/api --write-kubeconfig cell.kubeconfig
  kubectl --kubeconfig cell.kubeconfig apply -f deploy.yaml

  # In a CI job, with the job's own OIDC token and no kubeconfig
  %[1]s payments/api --hub https://cellcast.example.com --token-file oidc.jwt --write-kubeconfig cell.kubeconfig`, program),
		Args: cobra.MaximumNArgs(1),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			return e.place(cmd.Context(), o)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.workload, "workload", "", "the workload, where it isn't an argument")
	flags.DurationVar(&o.ttl, "ttl", 0, "how long the credential shall live, such as 15m; the policy's default if unset, its maximum at most")
	flags.BoolVar(&o.dark, "dark", false, "ask for a dark cell, and for no other")
	flags.StringToStringVar(&o.requests, "requests", nil, "what all pods of the workload request together, such as cpu=2,memory=4Gi; only a cell with room is chosen")
	flags.Lookup("requests").DefValue = ""
	flags.BoolVar(&o.explain, "explain", false, "show for each cell why it was or wasn't chosen")
	flags.StringVar(&o.dryRun, "dry-run", "none", "none or server; server, also without a value, decides and mints nothing")
	flags.Lookup("dry-run").NoOptDefVal = "server"
	flags.VarP(&o.format, "output", "o", "how to print the answer")
	flags.StringVar(&o.writeKubeconfig, "write-kubeconfig", "", "write a kubeconfig with the credential to this file, readable by you alone")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long the hub has to answer")
	o.door.AddTo(flags)
	return cmd
}

// complete checks what the flags can't check one by one.
func (o *placeOptions) complete(args []string) error {
	switch {
	case len(args) == 1 && o.workload != "":
		return &usageError{"name the workload once: as the argument or with --workload"}
	case len(args) == 1:
		o.workload = args[0]
	}
	switch {
	case o.workload == "":
		return &usageError{"which workload? Name it, such as payments/api"}
	case o.ttl < 0:
		return &usageError{"--ttl must be above zero"}
	case o.timeout <= 0:
		return &usageError{"--timeout must be above zero"}
	case o.dryRun == "client":
		return &usageError{"--dry-run=client can't answer anything: the hub decides; use --dry-run=server"}
	case o.dryRun != "none" && o.dryRun != "server":
		return &usageError{"--dry-run must be none or server"}
	case o.dryRun == "server" && o.writeKubeconfig != "":
		return &usageError{"--dry-run mints nothing that --write-kubeconfig could write: leave one of them out"}
	default:
		return nil
	}
}

// mints reports whether a credential is asked for.
func (o *placeOptions) mints() bool {
	return o.dryRun == "none" && (o.writeKubeconfig != "" || o.format.whole())
}

// spec is the question.
func (o *placeOptions) spec() (cellcastv1alpha1.PlacementSpec, error) {
	spec := cellcastv1alpha1.PlacementSpec{Workload: o.workload, Dark: o.dark, Explain: o.explain}
	if o.ttl > 0 {
		spec.TTL = o.ttl.String()
	}
	for name, value := range o.requests {
		quantity, err := resource.ParseQuantity(value)
		if err != nil || quantity.Sign() < 0 {
			return spec, &usageError{fmt.Sprintf("--requests %s=%s is no quantity, such as 500m or 4Gi", name, value)}
		}
		if spec.Resources == nil {
			spec.Resources = cellcastv1alpha1.ResourceList{}
		}
		spec.Resources[corev1.ResourceName(name)] = quantity
	}
	return spec, nil
}

// place asks, puts the credential where it belongs, and prints the answer.
func (e Env) place(ctx context.Context, o *placeOptions) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	if o.writeKubeconfig == "" {
		answer, err := e.decide(ctx, o, spec)
		if err != nil {
			return err
		}
		return e.printPlacement(o, answer)
	}
	file, err := kubeconfigfile.Reserve(o.writeKubeconfig)
	if err != nil {
		return err
	}
	answer, err := e.decideInto(ctx, o, spec, file)
	if err != nil {
		return errors.Join(err, e.abandon(file, o.writeKubeconfig))
	}
	return e.printPlacement(o, answer)
}

// decide asks and checks that the answer is one.
func (e Env) decide(ctx context.Context, o *placeOptions, spec cellcastv1alpha1.PlacementSpec) (*cellcastv1alpha1.Placement, error) {
	hub, err := e.openHub(o.door, o.timeout)
	if err != nil {
		return nil, err
	}
	answer, err := hub.place(ctx, spec, !o.mints())
	switch {
	case err != nil:
		return nil, err
	case answer.Status.Cell.Name == "":
		return nil, errors.New("the hub answered without a cell; is it a hub?")
	case o.mints() && (answer.Status.Credential == nil || answer.Status.Credential.Token == ""):
		return nil, &noCredentialError{fmt.Sprintf("the hub chose cell %q and returned no credential for it", answer.Status.Cell.Name)}
	case !o.mints():
		// Nobody asked for it, so nobody shall see it.
		answer.Status.Credential = nil
	}
	return answer, nil
}

// decideInto asks and moves the token from the answer into the file.
func (e Env) decideInto(ctx context.Context, o *placeOptions, spec cellcastv1alpha1.PlacementSpec, file *kubeconfigfile.File) (*cellcastv1alpha1.Placement, error) {
	answer, err := e.decide(ctx, o, spec)
	if err != nil {
		return nil, err
	}
	content, err := kubeconfigfile.Kubeconfig(answer.Status.Cell, *answer.Status.Credential)
	if err != nil {
		return nil, err
	}
	if err := file.Commit(content); err != nil {
		return nil, err
	}
	answer.Status.Credential.Token = ""
	return answer, nil
}

// abandon gives the file up and says so where an earlier credential went.
func (e Env) abandon(file *kubeconfigfile.File, path string) error {
	removed, err := file.Abandon()
	if removed {
		e.say("Removed %s: it was for the cell of an earlier run.", path)
	}
	return err
}
