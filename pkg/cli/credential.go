package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/door"
)

//nolint:gosec // a help text
const credentialHelp = `Be the exec plugin of a kubeconfig: kubectl, or any client-go program, runs this
when it needs a token for a cell, and again before that token ends. The kubeconfig
holds no token then, and nothing is kept on disk.

It names its cell, so the policy must let the caller choose it
(allowCellSelection). To find a cell, use place or exec.

Print such a kubeconfig with: credential kubeconfig. A token is given out only to
a client that says that it's client-go (KUBERNETES_EXEC_INFO), and, where the
kubeconfig has provideClusterInfo, only for the server and the CA that the hub
has for the cell; one that was issued for another is revoked, where the policy
makes it revocable. $KUBECONFIG is not the way to the hub here, for it names the
cell: the way is --kubeconfig or --hub, or $CELLCAST_HUB.

`

// credentialOptions is what the user asks for.
type credentialOptions struct {
	door    door.Flags
	timeout time.Duration
	cell    string
	spec    cellcastv1alpha1.CellTokenSpec
	ttl     time.Duration
}

func (e Env) credentialCommand(program string) *cobra.Command {
	o := &credentialOptions{}
	cmd := &cobra.Command{
		Use:     "credential --cell CELL --workload WORKLOAD",
		Short:   "Be the plugin that gives client-go a token when it needs one",
		Long:    credentialHelp + exitCodes,
		Example: fmt.Sprintf("  %[1]s credential kubeconfig --cell eu-1 --workload payments/api > cell.kubeconfig\n  kubectl --kubeconfig cell.kubeconfig get pods", program),
		Args:    cobra.NoArgs,
		RunE: do(func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(e.Getenv); err != nil {
				return err
			}
			return e.credential(cmd.Context(), o)
		}),
	}
	o.addTo(cmd.Flags())
	cmd.AddCommand(e.credentialKubeconfigCommand(program))
	return cmd
}

// addTo defines the flags, and returns those that say the way to the hub.
func (o *credentialOptions) addTo(flags *pflag.FlagSet) *pflag.FlagSet {
	flags.StringVar(&o.cell, "cell", "", "the cell")
	flags.StringVar(&o.spec.Workload, "workload", "", "the workload, such as payments/api")
	flags.DurationVar(&o.ttl, "ttl", 0, "how long each credential shall live, such as 15m; the policy's default if unset, its maximum at most")
	flags.BoolVar(&o.spec.Dark, "dark", false, "the cell is meant to be dark")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, timeoutHelp)
	way := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.door.AddTo(way)
	flags.AddFlagSet(way)
	return way
}

// complete checks what the flags can't check one by one.
func (o *credentialOptions) complete(getenv func(string) string) error {
	switch {
	case o.cell == "":
		return &usageError{"which cell? Name it with --cell"}
	case o.spec.Workload == "":
		return &usageError{"which workload? Name it with --workload, such as payments/api"}
	case o.ttl < 0:
		return &usageError{"--ttl must be above zero"}
	case o.timeout <= 0:
		return &usageError{"--timeout must be above zero"}
	case o.door.Hub == "" && o.door.Kubeconfig == "" && getenv(door.EnvHub) == "":
		return &usageError{"which hub? Name the way with --hub URL or --kubeconfig FILE: $KUBECONFIG may be the cell's here, and isn't followed"}
	case o.door.Hub == "" && o.door.Kubeconfig == "" && o.door.Context != "":
		return &usageError{"--context goes with --kubeconfig FILE here"}
	}
	if o.ttl > 0 {
		o.spec.TTL = o.ttl.String()
	}
	return nil
}

// credential answers client-go.
func (e Env) credential(ctx context.Context, o *credentialOptions) error {
	info, err := parseExecInfo(e.Getenv(envExecInfo))
	if err != nil {
		return err
	}
	if err := fitServer(info.Spec.Cluster, o.cell); err != nil {
		return err
	}
	hub, err := e.openPluginHub(ctx, o)
	if err != nil {
		return err
	}
	answer, err := hub.token(ctx, o.cell, o.spec)
	if err != nil {
		return err
	}
	s := answer.Status
	if s.Credential == nil || s.Credential.Token == "" {
		return &noCredentialError{fmt.Sprintf("the hub returned no credential for cell %q", o.cell)}
	}
	if err := sameServer(info.Spec.Cluster, s.Cell); err != nil {
		return fmt.Errorf("the token for cell %q is not given out, and %s: %w", o.cell, hub.discard(ctx, o.cell, *s.Credential), err)
	}
	until := endOf(*s.Credential)
	if !until.After(e.Now()) {
		return fmt.Errorf("the hub's credential for cell %q ended at %s already: compare the clocks of this machine and of the cell", o.cell, clock(until))
	}
	return e.writeExecCredential(s.Credential.Token, askAgainAt(e.Now(), until))
}

// openPluginHub goes through the door that the flags name. A kubeconfig of the hub
// that asks this very plugin would start it without end.
func (e Env) openPluginHub(ctx context.Context, o *credentialOptions) (*hub, error) {
	hub, err := e.openHub(ctx, o.door, o.timeout)
	if err != nil {
		return nil, err
	}
	if plugin := hub.at.Config.ExecProvider; plugin != nil && len(plugin.Args) > 0 && plugin.Args[0] == credentialArg {
		return nil, errors.New("the kubeconfig that shall lead to the hub is one of a cell: it asks cellcast itself for its token")
	}
	return hub, nil
}

// askAgainAt is when client-go shall ask again for a credential that ends then:
// before its end, since a request takes its time and clocks differ.
func askAgainAt(now, end time.Time) time.Time { return end.Add(-min(time.Minute, end.Sub(now)/10)) }

// writeExecCredential prints the token: here, and nowhere else, that's the purpose.
func (e Env) writeExecCredential(token string, until time.Time) error {
	answer := clientauthentication.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthentication.SchemeGroupVersion.String(), Kind: execCredentialKind},
		Status:   &clientauthentication.ExecCredentialStatus{Token: token, ExpirationTimestamp: &metav1.Time{Time: until}},
	}
	if err := json.NewEncoder(e.Out).Encode(answer); err != nil {
		return fmt.Errorf("write the credential: %w", err)
	}
	return nil
}
