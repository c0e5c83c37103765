package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/bring"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/probe/contract"
)

//nolint:gosec // a help text
const targetRegisterHelp = `Register a namespace of your own as a target of the hub. You need a kubeconfig that
works there (-f), and a namespace at the hub in which you may create Secrets, Roles
and ClusterTargets.

The hub takes a closed form of a kubeconfig: where the API is, its CA, and a token
that lasts. Whatever else is in yours is named, with what to do about it. Where it
holds such a token, that is registered as it is. Otherwise, as with a login by a
plugin or a certificate, --create-credential makes one on the target, as yourself:
a ServiceAccount that may do what the hub needs in that namespace and no more, with
a token of its own. What will be created is shown first. It's the better choice
wherever you may do that: you revoke it by deleting it.

At the hub it creates the Secret NAME-kubeconfig, a Role by which the hub reads that
one Secret, and the ClusterTarget NAME, with which the hub begins to probe.
With --vault-path the kubeconfig stays in your Vault: it's written to a file for you
to put there, and no Secret is made.

Where something fails, run the same command again: it goes on where it stopped. Run
it again with another kubeconfig to change the credential, and nothing else. It
never changes what it didn't make itself.

`

// targetRegisterOptions is what the user says about the target and the hub.
type targetRegisterOptions struct {
	filename, context         string
	endpoint, caFile          string
	hubKubeconfig, hubContext string
	hubNamespace, hubAccount  string
	createCredential          bool
	credentialAccount         string
	vaultPath                 string
	writeKubeconfig           string
	labels                    map[string]string
	spec                      registryv1alpha1.ClusterTargetSpec
	sandboxDriver             string
	dryRun, wait              bool
	timeout, waitTimeout      time.Duration
	// given reports whether the user wrote the flag.
	given func(flag string) bool
}

func (e Env) targetRegisterCommand(program string) *cobra.Command {
	o := &targetRegisterOptions{}
	cmd := &cobra.Command{
		Use:   "register NAME -f KUBECONFIG --namespace NAMESPACE",
		Short: "Register a namespace of your own as a target",
		Long:  targetRegisterHelp + targetExitCodes,
		Example: fmt.Sprintf(`  # See what it would create, here and there
  %[1]s target register eu -f ~/.kube/config --context eu --namespace payments --create-credential --dry-run

  # Do it, and watch the hub prove it
  %[1]s target register eu -f ~/.kube/config --context eu --namespace payments --create-credential -n payments --wait

  # A new token for a target that is registered
  %[1]s target register eu -f new.kubeconfig --namespace payments -n payments

  # From Vault
  %[1]s target register eu -f eu.kubeconfig --namespace payments --vault-path users/jo/eu --write-kubeconfig closed.kubeconfig`, program),
		Args: cobra.ExactArgs(1),
		RunE: do(func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args[0]); err != nil {
				return err
			}
			if err := e.registerTarget(cmd.Context(), o, args[0]); err != nil {
				return e.unavailableInstead(err, cmd.CommandPath())
			}
			return nil
		}),
	}
	o.addTo(cmd.Flags())
	o.given = cmd.Flags().Changed
	if err := cmd.MarkFlagRequired("namespace"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func (o *targetRegisterOptions) addTo(f *pflag.FlagSet) {
	f.StringVarP(&o.filename, "filename", "f", "", "kubeconfig that works on the target; - is the standard input (required, unless it's in Vault already)")
	f.StringVar(&o.context, "context", "", "context of that kubeconfig (default: its current one)")
	f.StringVar(&o.spec.Namespace, "namespace", "", "your namespace on the target (required)")
	f.StringVar(&o.endpoint, "endpoint", "", "https URL of the target's API for the hub, where it isn't the kubeconfig's")
	f.StringVar(&o.caFile, "certificate-authority", "", "PEM file with the CA of the target's API, where it isn't the kubeconfig's")
	f.BoolVar(&o.createCredential, "create-credential", false, "create a ServiceAccount with a token on the target for the hub, as yourself")
	f.StringVar(&o.credentialAccount, "credential-service-account", "", "what that ServiceAccount is called (default cellcast-NAME)")
	f.StringVar(&o.spec.ServiceAccountName, "service-account", "default", "ServiceAccount on the target that pods run as")
	f.StringSliceVar(&o.spec.ImagePullSecrets, "pull-secret", nil, "Secret on the target that pods pull images with; can be repeated")
	f.StringVar(&o.spec.Queue, "queue", "", "Kueue LocalQueue on the target, for measure jobs")
	f.StringVar(&o.sandboxDriver, "sandbox-driver", string(registryv1alpha1.SandboxPodman), "how pods make their sandboxes: Podman or Kubernetes")
	f.StringVar(&o.spec.IngestURL, "ingest-url", "", "https URL at which the target's pods reach the hub, where it isn't the hub's own")
	f.StringVar(&o.spec.Owner.User, "owner-user", "", "the user who owns the target (default: you)")
	f.StringVar(&o.spec.Owner.Group, "owner-group", "", "the group that owns it instead; you must be in it")
	f.StringToStringVar(&o.labels, "label", nil, "label of the row; env=dev lets tokens live longer than in production; can be repeated")
	f.Lookup("label").DefValue = ""
	f.StringVar(&o.vaultPath, "vault-path", "", "path in the hub's Vault that holds the kubeconfig, such as users/NAME/eu, instead of a Secret")
	f.StringVar(&o.writeKubeconfig, "write-kubeconfig", "", "with --vault-path, write the closed kubeconfig to this file, readable by you alone")
	f.StringVar(&o.hubKubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub (default $KUBECONFIG or ~/.kube/config)")
	f.StringVar(&o.hubContext, "hub-context", "", "context of the hub (default: the current one)")
	f.StringVarP(&o.hubNamespace, "hub-namespace", "n", "", rowNamespaceHelp)
	f.StringVar(&o.hubAccount, "hub-service-account", "cellcast-system/cellcast-hub", "namespace/name of the hub's own ServiceAccount")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the manifests, without any secret, and create nothing")
	f.BoolVar(&o.wait, "wait", false, "watch the probe to its end; the exit code is then that of probe")
	f.DurationVar(&o.waitTimeout, "wait-timeout", 5*time.Minute, "how long to watch")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long each request may take")
}

// complete checks what the flags can't check one by one.
func (o *targetRegisterOptions) complete(name string) error {
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0 || len(name) > 63:
		return &usageError{"the target's name must be lower-case letters, digits, - and ., at most 63 of them"}
	case len(validation.IsDNS1123Label(o.spec.Namespace)) > 0:
		return &usageError{"--namespace must be the name of a namespace on the target"}
	case o.filename == "" && (o.vaultPath == "" || o.createCredential || o.writeKubeconfig != ""):
		return &usageError{"which kubeconfig? Name it with -f"}
	case o.filename != "" && o.vaultPath != "" && o.writeKubeconfig == "":
		return &usageError{"where shall the closed kubeconfig go, for you to put into Vault? Name a new file with --write-kubeconfig, or leave out -f where it's in Vault already"}
	case o.vaultPath == "" && o.writeKubeconfig != "":
		return &usageError{"--write-kubeconfig goes with --vault-path: without, the kubeconfig goes into a Secret and nowhere else"}
	case o.spec.Owner.User != "" && o.spec.Owner.Group != "":
		return &usageError{"name a user or a group as the owner, not both"}
	case o.credentialAccount != "" && !o.createCredential:
		return &usageError{"--credential-service-account goes with --create-credential"}
	case o.credentialAccount != "" && len(validation.IsDNS1123Subdomain(o.credentialAccount)) > 0:
		return &usageError{"--credential-service-account must be the name of a ServiceAccount"}
	case o.timeout <= 0 || o.waitTimeout <= 0:
		return &usageError{"--timeout and --wait-timeout must be above zero"}
	case o.dryRun && o.wait:
		return &usageError{"--dry-run creates nothing that --wait could watch: leave one of them out"}
	}
	for _, driver := range []registryv1alpha1.SandboxDriver{registryv1alpha1.SandboxPodman, registryv1alpha1.SandboxKubernetes} {
		if strings.EqualFold(o.sandboxDriver, string(driver)) {
			o.spec.SandboxDriver = driver
			return nil
		}
	}
	return &usageError{"--sandbox-driver must be Podman or Kubernetes"}
}

// target is what the flags say, for a row in this namespace.
func (o *targetRegisterOptions) target(namespace, name string) (bring.Target, error) {
	hub, err := account("--hub-service-account", o.hubAccount)
	if err != nil {
		return bring.Target{}, err
	}
	t := bring.Target{Row: types.NamespacedName{Namespace: namespace, Name: name}, Labels: o.labels, Spec: o.spec, Hub: hub}
	if o.vaultPath != "" {
		t.Spec.CredentialRef.VaultRef = &registryv1alpha1.TargetVaultRef{Path: o.vaultPath, Key: registryv1alpha1.SecretKeyKubeconfig}
	}
	if o.createCredential {
		if t.Account = o.credentialAccount; t.Account == "" {
			t.Account = contract.DefaultAccount(name)
		}
	}
	return t, nil
}

// atHub is a kubectl command for the hub that the flags name.
func (o *targetRegisterOptions) atHub(command string) string {
	return kubectlFor(command, o.hubKubeconfig, o.hubContext)
}

// hubFlags are the way to the hub: its API server's, for it alone has the rows.
func (o *targetRegisterOptions) hubFlags() door.Flags {
	return door.Flags{Kubeconfig: o.hubKubeconfig, Context: o.hubContext}
}
