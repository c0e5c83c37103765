// Package app turns the flags of cellcast-agent into a running agent.
package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"cellcast.io/cellcast/pkg/agent"
)

// The exit codes.
const (
	exitStopped = 0 // a signal ended it
	exitFault   = 1 // it can't go on, or has lost the lease
	exitUsage   = 2 // the flags are wrong
)

// Run runs cellcast-agent with the arguments until ctx is done or it can't go
// on, and returns the exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	defer klog.Flush()
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)

	err := cmd.ExecuteContext(ctx)
	switch usage := (usageError{}); {
	case err == nil:
		return exitStopped
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(stderr, "%v\ncellcast-agent --help shows the flags.\n", usage)
		return exitUsage
	default:
		klog.ErrorS(err, "cellcast-agent ends")
		return exitFault
	}
}

// usageError is an error in the flags.
type usageError struct{ error }

func newCommand() *cobra.Command {
	o := DefaultOptions()
	cmd := &cobra.Command{
		Use:   "cellcast-agent --cell NAME --hub URL",
		Short: "Reports the capacity of the cell that it runs in to the hub",
		Long: `cellcast-agent reads the nodes and pods of the cell that it runs in and tells the
hub, every 30 seconds, what they can take and what is requested of it. It shows
the hub a projected token of its own ServiceAccount and holds no other
credential.

With --revocable-namespaces it also ends credentials when their time is over, and
reports the namespaces while it can. It goes by its own clock: keep that in step
with the cell's API server.

Of several replicas the holder of the lease reports, and all end credentials. A
replica that loses the lease ends with exit code 1, on purpose, and is to be
restarted; so does one that can't serve its probes. Wrong flags end it with 2, a
signal with 0.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		},
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.Flags().SortFlags = false
	o.AddFlags(cmd.Flags())

	logging := flag.NewFlagSet("logging", flag.ContinueOnError)
	klog.InitFlags(logging)
	cmd.Flags().AddGoFlag(logging.Lookup("v"))
	return cmd
}

func run(ctx context.Context, o *Options) error {
	config, err := o.Config()
	if err != nil {
		return err
	}
	a, err := agent.New(config)
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
