package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
)

// revokeTimeout is how long a credential's end may take when nobody uses it any
// more: whoever stopped the command is waiting.
const revokeTimeout = 10 * time.Second

// envCell is the variable in which the command finds the name of its cell.
const envCell = "CELLCAST_CELL"

const execHelp = `Place a workload, run a command with the credential, and end the credential with
the command.

The command finds in $KUBECONFIG a file of this run's own and in $CELLCAST_CELL
the name of the cell. The file is readable by you alone, in a new directory under
$RUNNER_TEMP, else $XDG_RUNTIME_DIR, else the system's directory for temporary
files. When the command has ended, also when a signal ended it, the directory is
removed and the credential is revoked, if the policy makes it revocable
(spec.credential.revocable). Where it isn't certain that this ended it, there is
a warning. Then, and where cellcast itself is killed, the cell's agent ends it at
the time that is said when the command starts.

INT, TERM, HUP, QUIT, USR1 and USR2 are handed on to the command. INT and QUIT
that a terminal sends reach the command without that, and are not sent twice.
A signal that comes while the hub is asked ends the run, and no command starts.

The exit code is the command's own, or 128+N where signal N ended it; 127 where
there is no such command, 126 where it can't be started. A line that begins with
Error: comes from cellcast, which didn't start the command then, and the exit
code is one of these.

`

// execOptions is what the user asks for.
type execOptions struct {
	door     door.Flags
	timeout  time.Duration
	question placeOptions
	command  []string
}

func (e Env) execCommand(program string) *cobra.Command {
	o := &execOptions{}
	cmd := &cobra.Command{
		Use:   "exec --workload WORKLOAD -- COMMAND [ARGUMENT...]",
		Short: "Run a command with a credential that ends with it",
		Long:  execHelp + exitCodes,
		Example: fmt.Sprintf(`  # Deploy; afterwards nobody holds a credential
  %[1]s exec --workload payments/api -- kubectl apply -f deploy.yaml

  # Several commands
  %[1]s exec --workload payments/api --ttl 5m -- sh -c 'kubectl apply -f . && kubectl rollout status deploy/api'`, program),
		DisableFlagsInUseLine: true,
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			return e.exec(cmd.Context(), o)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.question.workload, "workload", "", "the workload, such as payments/api")
	flags.DurationVar(&o.question.ttl, "ttl", 0, "how long the credential shall live at most, such as 15m; the policy's default if unset, its maximum at most")
	flags.BoolVar(&o.question.dark, "dark", false, "ask for a dark cell, and for no other")
	flags.StringToStringVar(&o.question.requests, "requests", nil, "what all pods of the workload request together, such as cpu=2,memory=4Gi; only a cell with room is chosen")
	flags.Lookup("requests").DefValue = ""
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, timeoutHelp)
	o.door.AddTo(flags)
	return cmd
}

// complete checks what the flags can't check one by one; dash is how many
// arguments stand before "--", or negative where there is none.
func (o *execOptions) complete(args []string, dash int) error {
	o.command = args
	switch {
	case dash != 0 || len(args) == 0 || args[0] == "":
		return &usageError{"which command? Put it after --, such as: --workload payments/api -- kubectl apply -f deploy.yaml"}
	case o.question.workload == "":
		return &usageError{"which workload? Name it with --workload, such as payments/api"}
	case o.question.ttl < 0:
		return &usageError{"--ttl must be above zero"}
	case o.timeout <= 0:
		return &usageError{"--timeout must be above zero"}
	default:
		return nil
	}
}

// exec runs the command between a placement and a revocation. What can fail
// without a credential is tried before there is one.
func (e Env) exec(ctx context.Context, o *execOptions) error {
	spec, err := o.question.spec()
	if err != nil {
		return err
	}
	c, err := e.newChild(ctx, o.command)
	if err != nil {
		return err
	}
	dir, err := e.privateDir()
	if err != nil {
		return err
	}
	defer e.removeDir(dir)
	defer c.listen()()

	answer, err := e.placeFor(c.stopped, o, spec)
	if err != nil {
		return err
	}
	defer func() {
		e.removeDir(dir) // first: it takes no time, and what it holds is a token
		e.handBack(ctx, o, answer)
	}()
	file, err := writeKubeconfig(dir, answer)
	if err != nil {
		return err
	}
	e.sayRunning(o, answer.Status)
	return c.run("KUBECONFIG="+file, envCell+"="+answer.Status.Cell.Name)
}

// placeFor asks for a cell and a credential.
func (e Env) placeFor(ctx context.Context, o *execOptions, spec cellcastv1alpha1.PlacementSpec) (*cellcastv1alpha1.Placement, error) {
	hub, err := e.openHub(ctx, o.door, o.timeout)
	if err != nil {
		return nil, err
	}
	return hub.decide(ctx, spec, false)
}
