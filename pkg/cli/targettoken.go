package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
	"cellcast.io/cellcast/pkg/cli/terminal"
)

//nolint:gosec // a help text
const targetTokenHelp = `Get a short-lived token of the ServiceAccount that pods of a brought target run as,
in the target's namespace. It's issued to whom the target's owner covers, while the
target is Ready and its owner lets the registered credential mint (the item Tokens
of the probe).

The token goes where you say and nowhere else: into FILE with --write-kubeconfig
FILE, readable by you alone, or into the answer with -o json or -o yaml. With
neither, nothing is asked: a token that nobody holds would only be one more token.
On its way it's sealed, and one that comes unsealed is refused. It can't be revoked
and ends by itself: by default in 10 minutes, where the target's label env doesn't
say otherwise.

`

// targetTokenOptions is what the user asks for.
type targetTokenOptions struct {
	door            door.Flags
	timeout         time.Duration
	namespace       string
	ttl             time.Duration
	format          answerFormat
	writeKubeconfig string
}

func (e Env) targetTokenCommand(program string) *cobra.Command {
	o := &targetTokenOptions{format: answerFormat{format: formatTable, also: []format{formatJSON, formatYAML}}}
	cmd := &cobra.Command{
		Use:     "token NAME",
		Short:   "Get a short-lived token of a brought target",
		Long:    targetTokenHelp + targetExitCodes,
		Example: fmt.Sprintf("  %[1]s target token eu -n payments --write-kubeconfig eu.kubeconfig\n  kubectl --kubeconfig eu.kubeconfig get pods", program),
		Args:    cobra.ExactArgs(1),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			switch {
			case o.writeKubeconfig == "" && !o.format.whole():
				return &usageError{"the token needs somewhere to go: --write-kubeconfig FILE, or -o json"}
			case o.ttl < 0:
				return &usageError{"--ttl must be above zero"}
			case o.timeout <= 0:
				return &usageError{"--timeout must be above zero"}
			}
			return e.inFormat(o.format.format, e.targetToken(cmd.Context(), o, args[0]))
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", rowNamespaceHelp)
	flags.DurationVar(&o.ttl, "ttl", 0, "how long the token shall live, such as 15m; the default of the target's env if unset, its maximum at most")
	flags.VarP(&o.format, "output", "o", "how to print the answer")
	flags.StringVar(&o.writeKubeconfig, "write-kubeconfig", "", "write a kubeconfig with the token to this file, readable by you alone")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, timeoutHelp)
	o.door.AddTo(flags)
	return cmd
}

// targetToken asks, and puts the token where it belongs.
func (e Env) targetToken(ctx context.Context, o *targetTokenOptions, name string) error {
	var file *kubeconfigfile.File
	var err error
	if o.writeKubeconfig != "" {
		if file, err = kubeconfigfile.Reserve(o.writeKubeconfig); err != nil {
			return err
		}
	}
	answer, err := e.targetTokenInto(ctx, o, name, file)
	if err != nil {
		return errors.Join(err, e.abandonToken(file, o.writeKubeconfig))
	}
	if o.format.whole() {
		if err := o.format.write(e.Out, answer); err != nil {
			return err
		}
	}
	if file == nil {
		return nil
	}
	e.say("Wrote %s with a credential for %s on target %s until %s: kubectl --kubeconfig %[1]s", o.writeKubeconfig,
		terminal.Printable(answer.Status.Credential.Namespace+"/"+answer.Status.Credential.ServiceAccountName), name, clock(endOf(*answer.Status.Credential)))
	return nil
}

// abandonToken gives the file up, where there is one, and says so where an earlier
// token went.
func (e Env) abandonToken(file *kubeconfigfile.File, path string) error {
	if file == nil {
		return nil
	}
	removed, err := file.Abandon()
	if removed {
		e.say("Removed %s, which an earlier run wrote.", path)
	}
	return err
}

// targetTokenInto asks and moves the token from the answer into the file, where
// there is one.
func (e Env) targetTokenInto(ctx context.Context, o *targetTokenOptions, name string, file *kubeconfigfile.File) (*cellcastv1alpha1.TargetToken, error) {
	hub, err := e.openHub(ctx, o.door, o.timeout)
	if err != nil {
		return nil, err
	}
	key, err := hub.targetKey(o.namespace, name)
	if err != nil {
		return nil, err
	}
	var spec cellcastv1alpha1.TargetTokenSpec
	if o.ttl > 0 {
		spec.TTL = o.ttl.String()
	}
	answer, err := hub.targetToken(ctx, key, spec)
	if err != nil {
		return nil, err
	}
	credential := answer.Status.Credential
	if credential == nil || credential.Token == "" {
		return nil, &noCredentialError{fmt.Sprintf("the hub returned no credential for target %s", key)}
	}
	if file == nil {
		return answer, nil
	}
	content, err := kubeconfigfile.TargetKubeconfig(answer.Status.Target, *credential)
	if err != nil {
		return nil, err
	}
	if err := file.Commit(content); err != nil {
		return nil, err
	}
	credential.Token = ""
	return answer, nil
}
