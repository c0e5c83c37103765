package app

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"cellcast.io/cellcast/pkg/hub"
	"cellcast.io/cellcast/pkg/kubeconfig/address"
)

func addTargetFlags(fs *pflag.FlagSet, t *hub.TargetSettings) {
	fs.StringVar(&t.TokenDir, "token-dir", t.TokenDir,
		"Folder for the tokens of brought targets, one file each, mode 0600, of this replica alone. It must be on tmpfs: in a pod an emptyDir with medium Memory. Empty: this hub takes no brought targets.")
	fs.BoolVar(&t.TokenDirAnywhere, "token-dir-anywhere", t.TokenDirAnywhere,
		"Take a --token-dir that isn't on tmpfs. Tokens then rest on a disk.")
	fs.StringSliceVar(&t.Addresses.Allow, "target-allow-addresses", t.Addresses.Allow,
		"Ranges, such as 127.0.0.0/8, that targets may be in although every hub denies them. They win over denied ones.")
	fs.StringSliceVar(&t.Addresses.Deny, "target-deny-addresses", t.Addresses.Deny,
		"Ranges that no target may be in, beside those that every hub denies: give the hub's own pods and Services.")
	fs.StringSliceVar(&t.Addresses.Ports, "target-ports", t.Addresses.Ports,
		"Ports, and ranges of them such as 30000-32767, that a target's API may have. Empty: 443 and 6443.")
	fs.StringVar(&t.CanaryImage, "canary-image", t.CanaryImage,
		"Image of the pod by which a probe proves the way from a target back to the hub. Without it no target becomes Ready.")
	fs.StringVar(&t.IngestCAFile, "ingest-ca-file", t.IngestCAFile,
		"Certificates (PEM) by which pods check the external listener. Empty: the roots that their image has.")
	fs.DurationVar(&t.Rescan, "target-rescan", t.Rescan,
		"How often each target's credential and API are looked at between probes. At least 10s.")
	fs.Float64Var(&t.PostsPerSecond, "posts-per-second", t.PostsPerSecond,
		"How many posts to the external listener are checked per second, whoever sends them; those of a pod that was accepted lately don't count. 0: no limit.")
	fs.Float64Var(&t.PostsPerSource, "posts-per-source", t.PostsPerSource,
		"How many of one address are looked at per second. Set 0, no limit, where a proxy stands before the listener and limits them itself.")
	fs.StringVar(&t.Vault.Address, "vault-address", t.Vault.Address,
		"The https URL of the Vault or OpenBao that vaultRefs are read in. Empty: a vaultRef can't be read.")
	fs.StringVar(&t.Vault.CAFile, "vault-ca-file", t.Vault.CAFile, "Certificates (PEM) to check it by. Empty: the system's roots.")
	fs.StringVar(&t.Vault.Namespace, "vault-namespace", t.Vault.Namespace, "Its namespace (Vault Enterprise). Empty: none.")
	fs.StringVar(&t.Vault.Mount, "vault-mount", t.Vault.Mount, "Mount of the KV version 2 engine.")
	fs.StringVar(&t.Vault.AuthMount, "vault-auth-mount", t.Vault.AuthMount, "Mount of the Kubernetes auth method.")
	fs.StringVar(&t.Vault.Role, "vault-role", t.Vault.Role, "Role that the hub's ServiceAccount takes there.")
	fs.StringVar(&t.Vault.Audience, "vault-audience", t.Vault.Audience, "Audience of the token that the hub shows it. It must be no cell's.")
}

func validateTargets(s hub.Settings) []error {
	var errs []error
	t := s.Targets
	if _, err := address.New(t.Addresses); err != nil {
		errs = append(errs, fmt.Errorf("--target-allow-addresses, --target-deny-addresses, --target-ports: %w", err))
	}
	if t.Rescan < hub.LeastRescan {
		errs = append(errs, fmt.Errorf("--target-rescan is %s: set %s at least", t.Rescan, hub.LeastRescan))
	}
	if t.PostsPerSecond < 0 || t.PostsPerSource < 0 {
		errs = append(errs, errors.New("--posts-per-second and --posts-per-source must not be negative; 0 is no limit"))
	}
	if v := t.Vault; v.Address != "" {
		if !isBareHTTPS(v.Address) {
			errs = append(errs, errors.New("--vault-address must be an https URL without userinfo, query or fragment"))
		}
		if v.Mount == "" || v.AuthMount == "" || v.Role == "" || v.Audience == "" {
			errs = append(errs, errors.New("--vault-mount, --vault-auth-mount, --vault-role and --vault-audience are needed with --vault-address"))
		}
	}
	if s.ExternalBindAddress != "" && net.ParseIP(s.ExternalBindAddress) == nil {
		errs = append(errs, fmt.Errorf("--external-bind-address %q is no IP address", s.ExternalBindAddress))
	}
	return errs
}
