package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"cellcast.io/cellcast/pkg/revocation"
)

// The bounds of --interval. With the hub's usual staleness window of 90 seconds
// a cell goes Unknown between two reports that are further apart than that.
const (
	shortestInterval = time.Second
	longestInterval  = 10 * time.Minute
)

// mostRevocable is how many namespaces a report may name.
const mostRevocable = 64

// off is the address that switches probes and metrics off.
const off = "0"

// Options are the flags of cellcast-agent.
type Options struct {
	Cell              string
	Hub               string
	HubCA             string
	TokenFile         string
	Interval          time.Duration
	Kubeconfig        string
	Namespace         string
	LeaderElect       bool
	HealthBindAddress string
	// RevocableNamespaces are where credentials are ended when their time is
	// over.
	RevocableNamespaces []string
}

// DefaultOptions returns the defaults. --cell and --hub have none.
func DefaultOptions() *Options {
	return &Options{ //nolint:gosec // the path of a token is no token
		TokenFile:         "/var/run/secrets/cellcast.io/token",
		Interval:          30 * time.Second,
		Namespace:         "cellcast-system",
		LeaderElect:       true,
		HealthBindAddress: ":8081",
	}
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Cell, "cell", o.Cell,
		"Name of the Cluster on the hub that this cell is.")
	fs.StringVar(&o.Hub, "hub", o.Hub,
		"The https URL of the hub's direct door.")
	fs.StringVar(&o.HubCA, "hub-ca", o.HubCA,
		"File with the PEM certificates that the hub's certificate is checked against. Read anew for each report. Empty: the system's roots.")
	fs.StringVar(&o.TokenFile, "token-file", o.TokenFile,
		"File with the projected token of the agent's ServiceAccount, for the hub's --reporter-audience. Read anew for each report.")
	fs.DurationVar(&o.Interval, "interval", o.Interval,
		"Time between two reports, give or take a tenth.")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Kubeconfig of the cell. Empty: the agent's own ServiceAccount, in the cell.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace of the Lease cellcast-agent.")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect,
		"Report only while holding the Lease. Switch it off only where there is one replica.")
	fs.StringSliceVar(&o.RevocableNamespaces, "revocable-namespaces", o.RevocableNamespaces,
		"Namespaces in which revocable credentials are ended: every Secret there with the label "+revocation.LabelSeconds+" is deleted when its time is over. Empty: none.")
	fs.StringVar(&o.HealthBindAddress, "health-bind-address", o.HealthBindAddress,
		`Address of /healthz, /readyz and /metrics, over plain HTTP. "0" switches them off.`)
}

// Validate returns everything that is wrong with the flags.
func (o *Options) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if problems := validation.IsDNS1123Subdomain(o.Cell); o.Cell == "" {
		wrong("--cell is missing: set it to the name of the Cluster on the hub")
	} else if len(problems) > 0 || len(o.Cell) > 63 {
		wrong("--cell %q can't be the name of a Cluster: set at most 63 lower-case letters, digits, '-' and '.'", o.Cell)
	}
	if o.Hub == "" {
		wrong("--hub is missing: set it to the https URL of the hub's direct door, such as https://cellcast.example.com:8443")
	} else if !isHubURL(o.Hub) {
		wrong("--hub must be an https URL with a host and without userinfo, query or fragment, such as https://cellcast.example.com:8443")
	}
	if o.TokenFile == "" {
		wrong("--token-file is empty: set it to the file of a projected ServiceAccount token for the hub's audience")
	}
	if o.Interval < shortestInterval || o.Interval > longestInterval {
		wrong("--interval %s is out of bounds: set 1s to 10m; 30s suits the hub's usual staleness window of 90s", o.Interval)
	}
	if o.LeaderElect && len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		wrong("--namespace %q can't be the name of a namespace: set the one that the agent runs in", o.Namespace)
	}
	if o.HealthBindAddress != off {
		if _, _, err := net.SplitHostPort(o.HealthBindAddress); err != nil {
			wrong(`--health-bind-address %q is no address: set one such as :8081, or "0" to serve neither probes nor metrics`, o.HealthBindAddress)
		}
	}
	return errors.Join(append(errs, o.checkRevocable())...)
}

// checkRevocable refuses what a hub wouldn't take in a report.
func (o *Options) checkRevocable() error {
	if n := len(o.RevocableNamespaces); n > mostRevocable {
		return fmt.Errorf("--revocable-namespaces has %d entries: name at most %d", n, mostRevocable)
	}
	for _, name := range o.RevocableNamespaces {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("--revocable-namespaces has %q, which can't be the name of a namespace: set names with commas between them", name)
		}
	}
	return nil
}

func isHubURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && !strings.ContainsAny(s, "@?#")
}
