package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/registration"
)

const registerHelp = `Print what joins a cell to a hub, in four parts, each for another place:

  hub             the Cluster row, for the hub
  cell            RBAC and the policy that bounds it, for the cell
  authentication  the AuthenticationConfiguration of the cell's kube-apiserver
  audit           the rule for its audit policy

--context is the cell's context in your kubeconfig: address and CA are taken from
it, a credential never is. It's used once, to ask the cell for its issuer, unless
--reporter-issuer names that.

With --apply the first two are applied, and what remains to be done by hand is
printed. Give the same flags when you register a cell anew: as with kubectl apply,
what an earlier run set and this one leaves out is taken away, the state excepted;
and what someone else has set isn't overwritten.

A --revocable namespace is for ServiceAccounts whose credentials end when the job
does, and for nothing else. Every token that the hub gets there is bound to an empty
Secret and dies with it; no one, you included, can create any other Secret there;
and without the flag --revocable-namespaces of the cell's agent the hub issues none.
The cell's agent may read all Secrets there. So it must hold no other one already:
--apply refuses it then, and before you apply what is printed, look yourself.

`

// registerOptions is what the user says about the cell and the hub.
type registerOptions struct {
	kubeconfig, context       string
	hubKubeconfig, hubContext string
	endpoint                  string
	provider, state           string
	labels                    map[string]string
	audience                  string
	issuer                    string
	apiAudiences              []string
	agent                     string
	mint                      []string
	mintAudiences             []string
	revocable                 []string
	revocableQuota            int64
	maxTTL                    time.Duration
	hubIssuer                 string
	mirrorURL, mirrorCA       string
	hubAccount                string
	only                      string
	apply                     bool
	timeout                   time.Duration
}

func (e Env) registerCommand(program string) *cobra.Command {
	register := &cobra.Command{
		Use:   "register",
		Short: "Print or apply what joins a cell to a hub",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	o := &registerOptions{}
	cell := &cobra.Command{
		Use:   "cell NAME",
		Short: "Print or apply what joins a cell to a hub",
		Long:  registerHelp + exitCodes,
		Example: fmt.Sprintf(`  # See everything
  %[1]s register cell eu-1 --context eu-1-admin --label env=prod --label region=eu \
    --mint payments/deployer --hub-issuer https://hub.example.com --mirror-url https://cellcast.example.com:9443

  # Only what goes into the cell's --authentication-config
  %[1]s register cell eu-1 … --only authentication > eu-1.yaml

  # Let credentials of one namespace end when the job does
  %[1]s register cell eu-1 … --mint payments-ci/deployer --revocable payments-ci

  # Apply what can be applied
  %[1]s register cell eu-1 … --apply --hub-context hub-admin`, program),
		Args: cobra.ExactArgs(1),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return e.register(cmd.Context(), o, args[0])
		}),
	}
	o.addTo(cell)
	register.AddCommand(cell)
	return register
}

func (o *registerOptions) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.context, "context", "", "context of the cell in the kubeconfig (required)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig with that context (default $KUBECONFIG or ~/.kube/config)")
	f.StringVar(&o.endpoint, "endpoint", "", "https URL of the cell's API server for hub and callers, where it isn't the kubeconfig's")
	f.StringVar(&o.provider, "provider", "", "whose Kubernetes the cell is: eks, gke, aks or generic")
	f.StringVar(&o.state, "state", "", "LIVE, DARK or DRAINING; left out, a new cell is LIVE, and with --apply a known one keeps its state")
	f.StringToStringVar(&o.labels, "label", nil, "label that policies select by, such as env=prod; can be repeated")
	f.StringVar(&o.audience, "audience", "", "audience of the hub's tokens for this cell (default cellcast:cell:NAME)")
	f.StringVar(&o.issuer, "reporter-issuer", "", "issuer of the cell's ServiceAccount tokens (default: the cell is asked)")
	f.StringSliceVar(&o.apiAudiences, "api-audience", nil, "the cell's kube-apiserver --api-audiences (default: the issuer); on EKS https://kubernetes.default.svc")
	f.StringVar(&o.agent, "agent", "cellcast-system/cellcast-agent", "namespace/name of the ServiceAccount that reports the cell's capacity")
	f.StringSliceVar(&o.mint, "mint", nil, "namespace/name of a ServiceAccount that the hub may ask tokens for; can be repeated (required)")
	f.StringSliceVar(&o.mintAudiences, "mint-audience", nil, "audience that those tokens may have besides the API server's; can be repeated")
	f.DurationVar(&o.maxTTL, "max-ttl", time.Hour, "the longest life of those tokens, at least 10m; also a hub that was taken over gets no longer one")
	f.StringSliceVar(&o.revocable, "revocable", nil, "namespace whose credentials can be revoked, and which holds nothing else; can be repeated")
	f.Int64Var(&o.revocableQuota, "revocable-quota", registration.DefaultRevocableQuota, "how many revocable credentials each such namespace may have at a time, 1 to 100000")
	f.StringVar(&o.hubIssuer, "hub-issuer", "", "issuer of the hub's ServiceAccount tokens (required)")
	f.StringVar(&o.mirrorURL, "mirror-url", "", "https URL of the hub's discovery mirror; left out, the cell reads the hub issuer's own discovery document")
	f.StringVar(&o.mirrorCA, "mirror-ca", "", "PEM file to check the mirror by (default: the roots of the cell's control plane)")
	f.StringVar(&o.hubAccount, "hub-serviceaccount", "cellcast-system/cellcast-hub", "namespace/name of the hub's own ServiceAccount")
	f.StringVar(&o.only, "only", "", "print one part alone: hub, cell, authentication or audit")
	f.BoolVar(&o.apply, "apply", false, "apply the parts hub and cell")
	f.StringVar(&o.hubContext, "hub-context", "", "context of the hub, for --apply")
	f.StringVar(&o.hubKubeconfig, "hub-kubeconfig", "", "kubeconfig with the hub's context (default: that of --kubeconfig)")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long each request may take")
	for _, required := range []string{"context", "mint", "hub-issuer"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err) // the flag is defined above
		}
	}
	cmd.MarkFlagsRequiredTogether("apply", "hub-context")
	cmd.MarkFlagsMutuallyExclusive("apply", "only")
}

func (o *registerOptions) check() error {
	switch part(o.only) {
	case "", partHub, partCell, partAuthentication, partAudit:
	default:
		return &usageError{"--only must be hub, cell, authentication or audit"}
	}
	if o.revocableQuota < 1 {
		return &usageError{"--revocable-quota must be 1 to 100000"}
	}
	if o.timeout <= 0 {
		return &usageError{"--timeout must be above zero"}
	}
	if o.hubKubeconfig == "" {
		o.hubKubeconfig = o.kubeconfig
	}
	return nil
}

// register gathers the facts and prints or applies what follows from them.
func (e Env) register(ctx context.Context, o *registerOptions, name string) error {
	cell, err := o.cell(ctx, name)
	if err != nil {
		return err
	}
	if o.apply && cell.State == "" {
		if cell.State, err = o.presentState(ctx, name); err != nil {
			return err
		}
	}
	r, err := registration.New(cell)
	if err != nil {
		return &usageError{strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	if cell.Labels[registryv1alpha1.LabelEnv] == "" {
		e.say("Note: without --label env=… the cell's credentials live as long as in production: 10m, at most 15m.")
	}
	if len(cell.Revocable) > 0 {
		e.say("Note: start the cell's agent with --revocable-namespaces=%s: until it does its part, the hub issues no credential there.", strings.Join(cell.Revocable, ","))
	}
	if o.apply {
		return e.applyRegistration(ctx, o, r)
	}
	if o.only != "" {
		return e.printParts(r, part(o.only))
	}
	return e.printParts(r, partHub, partCell, partAuthentication, partAudit)
}
