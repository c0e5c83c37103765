package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"cellcast.io/cellcast/pkg/cli/door"
)

// credentialArg is the command's name, and so the first argument of the plugin.
const credentialArg = "credential"

// pinDoor says by flags what the environment says about the way to the hub: the
// plugin runs in another one, where $KUBECONFIG is the cell's.
func (o *credentialOptions) pinDoor(getenv func(string) string, way *pflag.FlagSet) error {
	named := o.door.Kubeconfig != "" || o.door.Context != ""
	if o.door.Hub != "" || !named && getenv(door.EnvHub) != "" {
		for flag, variable := range map[string]string{"hub": door.EnvHub, "hub-ca": door.EnvHubCA} {
			if err := setUnset(way, flag, getenv(variable)); err != nil {
				return err
			}
		}
		if way.Changed("token-env") {
			return nil
		}
		return setUnset(way, "token-file", getenv(door.EnvTokenFile))
	}
	return o.pinKubeconfig(way)
}

// pinKubeconfig names the hub's kubeconfig and its context.
func (o *credentialOptions) pinKubeconfig(way *pflag.FlagSet) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.door.Kubeconfig
	if o.door.Kubeconfig == "" {
		var there []string
		for _, path := range rules.GetLoadingPrecedence() {
			if _, err := os.Stat(path); err == nil {
				there = append(there, path)
			}
		}
		if len(there) != 1 {
			return &usageError{fmt.Sprintf("which hub? Name the way with --hub URL or --kubeconfig FILE: the environment names %d kubeconfigs", len(there))}
		}
		rules.ExplicitPath = there[0]
		if err := way.Set("kubeconfig", there[0]); err != nil {
			return err
		}
	}
	if o.door.Context != "" {
		return nil
	}
	config, err := rules.Load()
	if err != nil {
		return fmt.Errorf("read the kubeconfig of the hub: %w", err)
	}
	return setUnset(way, "context", config.CurrentContext)
}

// setUnset sets a flag that the user didn't set.
func setUnset(flags *pflag.FlagSet, name, value string) error {
	if flag := flags.Lookup(name); flag == nil || flag.Changed || value == "" {
		return nil
	}
	return flags.Set(name, value)
}

// pluginArgs is the command line with which the plugin is to be run.
func (o *credentialOptions) pluginArgs(way *pflag.FlagSet) ([]string, error) {
	args := []string{credentialArg, "--cell=" + o.cell, "--workload=" + o.spec.Workload}
	if o.spec.TTL != "" {
		args = append(args, "--ttl="+o.spec.TTL)
	}
	if o.spec.Dark {
		args = append(args, "--dark")
	}
	if o.timeout != 30*time.Second {
		args = append(args, "--timeout="+o.timeout.String())
	}
	var failed error
	way.VisitAll(func(flag *pflag.Flag) {
		if !flag.Changed {
			return
		}
		value := flag.Value.String()
		switch flag.Name {
		case "kubeconfig", "hub-ca", "token-file":
			path, err := filepath.Abs(value)
			if err != nil {
				failed = fmt.Errorf("--%s: %w", flag.Name, err)
			}
			value = path
		}
		args = append(args, "--"+flag.Name+"="+value)
	})
	return args, failed
}
