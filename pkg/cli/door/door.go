// Package door finds the way to the hub. There are two, with the same paths
// and the same answers behind them: the hub's kube-apiserver, entered with a
// kubeconfig as with kubectl, and the hub's own port, entered with the OIDC
// token that a CI platform gives the job: in a file, in a variable, or on
// request (see SourceHelp).
//
// No flag holds a token, for every process of the machine could read it there,
// and no error quotes one. A token is kept nowhere but in the Door.
package door

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Kind is which of the two doors it is.
type Kind string

// The doors.
const (
	// Aggregated is the hub's kube-apiserver.
	Aggregated Kind = "aggregated"
	// Direct is the hub's own port.
	Direct Kind = "direct"
)

// The environment variables that stand in for the flags of the direct door.
const (
	EnvHub       = "CELLCAST_HUB"
	EnvHubCA     = "CELLCAST_HUB_CA"
	EnvTokenFile = "CELLCAST_TOKEN_FILE" //nolint:gosec // the name of a variable that names a file
	EnvAudience  = "CELLCAST_AUDIENCE"
	// EnvToken holds the token itself. GitLab and CircleCI hand tokens to a job
	// in variables, so it's there already.
	EnvToken = "CELLCAST_TOKEN" //nolint:gosec // the name of a variable
)

// DefaultAudience is what a token is asked for where nothing else is said, and
// what cellcast issuer makes a hub expect.
const DefaultAudience = "cellcast.io/hub"

// Door is an open door.
type Door struct {
	Kind Kind
	// Config is how to connect, credential included.
	Config *rest.Config
	// Kubeconfig and Context are what the user named the aggregated door by, for the
	// commands that shall go there, too; empty where it's kubectl's own choice.
	Kubeconfig, Context string
	// Namespace is that of the kubeconfig's context, or default; empty at the
	// direct door.
	Namespace string
	// TokenSource is where the direct door's token came from, as part of a
	// sentence, such as "the token in oidc.jwt" or "the token of GitHub Actions".
	TokenSource string
	// Claims is what that token says of itself. Nobody has verified it: it's
	// for telling the caller why the hub may not have accepted it.
	Claims Claims
}

// Flags are what the user says about the way to the hub.
type Flags struct {
	Kubeconfig string
	Context    string
	Hub        string
	HubCA      string
	TokenFile  string
	TokenEnv   string
	Audience   string
}

// AddTo defines the flags.
func (f *Flags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig of the hub (default $KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&f.Context, "context", "", "context of that kubeconfig")
	flags.StringVar(&f.Hub, "hub", "", "https URL of the hub's own port, for callers without a kubeconfig; goes with the job's OIDC token (default $"+EnvHub+")")
	flags.StringVar(&f.HubCA, "hub-ca", "", "PEM file to check the hub's certificate by; empty means the system's roots (default $"+EnvHubCA+")")
	flags.StringVar(&f.TokenFile, "token-file", "", "file with the job's OIDC token, for --hub (default $"+EnvTokenFile+")")
	flags.StringVar(&f.TokenEnv, "token-env", "", "name of the environment variable with that token (default "+EnvToken+"); with neither, the token is fetched on GitHub Actions and Buildkite")
	flags.StringVar(&f.Audience, "audience", "", "whom a token that is fetched shall be for (default $"+EnvAudience+" or "+DefaultAudience+")")
}

// UsageError says that the flags don't go together.
type UsageError struct{ Message string }

// Error is the message.
func (e *UsageError) Error() string { return e.Message }

// Open returns the door that the flags name or, where they name none,
// the environment: the direct one where CELLCAST_HUB is set, else the
// kubeconfig. The token of the direct one may be asked of the CI platform, for
// which there are ten seconds.
func (f Flags) Open(ctx context.Context, getenv func(string) string) (Door, error) {
	return f.open(ctx, job{getenv: getenv})
}

func (f Flags) open(ctx context.Context, j job) (Door, error) {
	kubeconfigNamed := f.Kubeconfig != "" || f.Context != ""
	switch {
	case f.Hub != "" && kubeconfigNamed:
		return Door{}, &UsageError{"--hub is a way to the hub without a kubeconfig: leave out --kubeconfig and --context, or --hub"}
	case f.Hub == "" && !kubeconfigNamed && j.getenv(EnvHub) != "":
		f.Hub = j.getenv(EnvHub)
	case f.Hub == "" && first(f.HubCA, f.TokenFile, f.TokenEnv, f.Audience) != "":
		return Door{}, &UsageError{"--hub-ca, --token-file, --token-env and --audience go with --hub URL (or $" + EnvHub + ")"}
	}
	if f.Hub == "" {
		return f.openAggregated()
	}
	f.HubCA = first(f.HubCA, j.getenv(EnvHubCA))
	return f.openDirect(ctx, j)
}

func (f Flags) openAggregated() (Door, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.Context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return Door{}, errors.New("no way to the hub: there is no kubeconfig. Name one with --kubeconfig, " +
			"or in a CI job use --hub URL with the job's OIDC token")
	case err != nil:
		return Door{}, fmt.Errorf("read the kubeconfig of the hub: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return Door{}, fmt.Errorf("read the kubeconfig of the hub: %w", err)
	}
	return Door{Kind: Aggregated, Config: config, Kubeconfig: f.Kubeconfig, Context: f.Context, Namespace: namespace}, nil
}

func (f Flags) openDirect(ctx context.Context, j job) (Door, error) {
	u, err := url.Parse(f.Hub)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return Door{}, &UsageError{"--hub must be an https URL without user, query and fragment, such as https://cellcast.example.com"}
	}
	from, err := f.source(j)
	if err != nil {
		return Door{}, err
	}
	config := &rest.Config{Host: strings.TrimRight(f.Hub, "/")}
	if f.HubCA != "" {
		if config.CAData, err = readCA(f.HubCA); err != nil {
			return Door{}, err
		}
	}
	token, err := from.read(ctx)
	if err != nil {
		return Door{}, err
	}
	config.BearerToken = token.Reveal()
	return Door{Kind: Direct, Config: config, TokenSource: from.phrase, Claims: token.Claims()}, nil
}

func readCA(path string) ([]byte, error) {
	pem, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the CA file %s doesn't exist. Where the hub's certificate is issued in the hub, fetch its CA with: "+
			"kubectl get apiservice v1alpha1.cellcast.io -o jsonpath='{.spec.caBundle}' | base64 -d > %[1]s", path)
	case err != nil:
		return nil, fmt.Errorf("read the hub's CA: %w", err)
	case !strings.Contains(string(pem), "-----BEGIN CERTIFICATE-----"):
		return nil, fmt.Errorf("the CA file %s holds no PEM certificate", path)
	}
	return pem, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
