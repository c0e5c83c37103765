// Package cli is the cellcast client: it asks the hub where a workload goes and
// for the credential to deploy it there, shows the cells, and prints what joins
// a cell to a hub. The same program is the kubectl plugin, under the names
// kubectl-cellcast and kubectl-create-placement.
//
// It answers with an exit code that a script can act on, says on the standard
// error what went wrong and what to do, and shows a token only to who asked for
// it. While its --timeout lasts it asks again where that can help, and waits as
// long as the hub says. Where the hub can't decide, it answers by the stance that
// its user declared, with a cell and never with a credential.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

// Env is the world that the client runs in.
type Env struct {
	// Args is the command line, the program's own name first.
	Args []string
	// Out takes answers, Err everything else.
	Out, Err io.Writer
	Getenv   func(string) string
	// Now tells the time, to say how long a credential still lives.
	Now func() time.Time
	// Sleep waits between two tries, until ctx ends at most; nil really waits.
	Sleep func(ctx context.Context, d time.Duration) error
	// Random spreads waits: from 0 to 1, without 1; nil really draws.
	Random func() float64
	// UserCacheDir is where the user's caches are; nil means nowhere.
	UserCacheDir func() (string, error)
	// Window tells the size of the terminal that Out is; nil means that it's none.
	Window func() (width, height int)
}

// System is the process's own world.
func System() Env {
	return Env{Args: os.Args, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now, UserCacheDir: os.UserCacheDir,
		Window: windowOf(os.Stdout)}
}

// Run does what the command line says and returns the exit code; see exitCodes.
func Run(ctx context.Context, env Env) int {
	command := env.command()
	command.SetArgs(env.Args[1:])
	command.SetOut(env.Out)
	command.SetErr(env.Err)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.CompletionOptions.HiddenDefaultCmd = true
	// What client-go would log is in the errors that it returns.
	called, err := command.ExecuteContextC(klog.NewContext(ctx, klog.Logger{}))
	if err == nil {
		return exitDone
	}
	var status *exitStatus
	if errors.As(err, &status) {
		return status.code
	}
	var begun *begunError
	if !errors.As(err, &begun) {
		err = &usageError{err.Error()}
	}
	r := explain(err, env.Now())
	env.tell(r, called.CommandPath())
	return r.exit
}

// say writes a line to the standard error. Where that fails there is nobody left
// to tell.
func (e Env) say(format string, args ...any) { _, _ = fmt.Fprintf(e.Err, format+"\n", args...) }

// command is the command that the program's name stands for.
func (e Env) command() *cobra.Command {
	switch strings.TrimSuffix(filepath.Base(e.Args[0]), ".exe") {
	case "kubectl-create-placement":
		place := e.placeCommand("kubectl create placement")
		place.Use = "placement WORKLOAD"
		place.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl create placement"}
		return place
	case "kubectl-cellcast":
		return e.rootCommand("kubectl cellcast")
	default:
		return e.rootCommand("cellcast")
	}
}

func (e Env) rootCommand(program string) *cobra.Command {
	root := &cobra.Command{
		Use:         "cellcast",
		Short:       "Ask which cell a workload goes to, and for the credential to deploy it there",
		Long:        "Ask which cell a workload goes to, and for the credential to deploy it there.\n\n" + exitCodes,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(
		e.placeCommand(program+" place"),
		e.execCommand(program),
		e.credentialCommand(program),
		e.revokeCommand(program),
		e.cellsCommand(program),
		e.policyCommand(program),
		e.issuerCommand(program),
		e.registerCommand(program),
		e.targetCommand(program),
		e.targetsCommand(program),
		e.probeCommand(program),
		e.versionCommand(),
	)
	return root
}

func (e Env) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of the API that it speaks",
		Args:  cobra.NoArgs,
		RunE: do(func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(e.Out, "cellcast %s, API cellcast.io/v1alpha1\n", version())
			return err
		}),
	}
}

// version is the version of the module that the program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}

// begunError marks an error of a command that has begun. Any other is cobra's
// word on the command line: a wrong use.
type begunError struct{ error }

func (e *begunError) Unwrap() error { return e.error }

// do is the body of a command.
func do(body func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := body(cmd, args); err != nil {
			return &begunError{err}
		}
		return nil
	}
}
