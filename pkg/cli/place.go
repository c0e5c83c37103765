package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/stance"
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

Where the hub can't decide, or doesn't answer while --timeout lasts,
--on-unavailable says what to do: fail, answer with the cell that the hub chose
last for this workload, or with the named one. Such an answer is a cell and no
credential; where one was asked for, the exit code is 5. It's no way past a
refusal, nor to a cell that the hub has just ruled out. Decisions are kept for
last-known, and credentials never, in --cache-dir, else $CELLCAST_CACHE_DIR, else
the user's folder for caches; a run with --dry-run leaves them as they are.

-o name prints the cell as kubectl names objects, cell.cellcast.io/NAME; in a
shell ${cell##*/} is the bare name.

`

const timeoutHelp = "how long it may take in all; while it lasts, what may clear is asked again"

// placeOptions is what the user asks for.
type placeOptions struct {
	door            door.Flags
	timeout         time.Duration
	stance          stance.Stance
	cacheDir        string
	cacheTTL        time.Duration
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
		Long:  placeHelp + door.SourceHelp + "\n" + exitCodes,
		Example: fmt.Sprintf(`  # Which cell would it be, and why not the others?
  %[1]s payments/api --explain

  # Deploy with the credential, which lives for some minutes
  %[1]s payments/api --write-kubeconfig cell.kubeconfig
  kubectl --kubeconfig cell.kubeconfig apply -f deploy.yaml

  # Which values file to use, also while the hub is down
  %[1]s payments/api -o name --on-unavailable last-known

  # In a CI job, with the job's own OIDC token and no kubeconfig
  %[1]s payments/api --hub https://cellcast.example.com --token-file oidc.jwt --write-kubeconfig cell.kubeconfig`, program),
		Args: cobra.MaximumNArgs(1),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			return e.inFormat(o.format, e.place(cmd.Context(), o))
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
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, timeoutHelp)
	flags.Var(&o.stance, "on-unavailable", "what to answer where the hub can't decide")
	flags.StringVar(&o.cacheDir, "cache-dir", "", "folder with the hub's last decisions, for last-known (default $"+envCacheDir+", else cellcast in the user's folder for caches)")
	flags.DurationVar(&o.cacheTTL, "cache-ttl", 24*time.Hour, "how long last-known may answer with a decision")
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
	case o.cacheTTL <= 0:
		return &usageError{"--cache-ttl must be above zero"}
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
