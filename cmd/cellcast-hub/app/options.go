package app

import (
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/pflag"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"

	"cellcast.io/cellcast/pkg/hub"
	"cellcast.io/cellcast/pkg/policy"
)

// Options are the flags of cellcast-hub: those of k8s.io/apiserver for serving,
// and the hub's own.
type Options struct {
	Serving        *genericoptions.SecureServingOptionsWithLoopback
	Authentication *genericoptions.DelegatingAuthenticationOptions
	Authorization  *genericoptions.DelegatingAuthorizationOptions
	Audit          *genericoptions.AuditOptions
	Features       *genericoptions.FeatureOptions
	Tracing        *genericoptions.TracingOptions
	CoreAPI        *genericoptions.CoreAPIOptions
	Logs           *logsapi.LoggingConfiguration
	LogLevel       logLevel
	// MaxInFlight and MaxMutatingInFlight add up to the seats that priority and
	// fairness deals out. They are two numbers only where that is switched off.
	MaxInFlight, MaxMutatingInFlight int
	Hub                              hub.Settings
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	serving := genericoptions.NewSecureServingOptions()
	serving.BindPort = 8443
	// The aggregator multiplexes every caller over few HTTP/2 connections.
	serving.HTTP2MaxStreamsPerConnection = 1000

	features := genericoptions.NewFeatureOptions()
	features.EnableProfiling = false

	return &Options{
		Serving:        serving.WithLoopback(),
		Authentication: genericoptions.NewDelegatingAuthenticationOptions(),
		Authorization:  genericoptions.NewDelegatingAuthorizationOptions(),
		Audit:          genericoptions.NewAuditOptions(),
		Features:       features,
		Tracing:        genericoptions.NewTracingOptions(),
		CoreAPI:        genericoptions.NewCoreAPIOptions(),
		Logs:           logsapi.NewLoggingConfiguration(),
		LogLevel:       levelInfo,

		MaxInFlight: 400, MaxMutatingInFlight: 200, // as kube-apiserver

		Hub: hub.DefaultSettings(),
	}
}

// Flags returns the flags in their sections.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sections cliflag.NamedFlagSets
	o.addHubFlags(sections.FlagSet("hub"))
	addReplicaFlags(sections.FlagSet("replicas"), &o.Hub)
	o.addExternalFlags(sections.FlagSet("external listener"))
	addTargetFlags(sections.FlagSet("brought targets"), &o.Hub.Targets)
	o.Serving.AddFlags(sections.FlagSet("direct door"))
	o.CoreAPI.AddFlags(sections.FlagSet("hub cluster"))
	o.Authentication.AddFlags(sections.FlagSet("hub cluster"))
	o.Authorization.AddFlags(sections.FlagSet("hub cluster"))
	o.Features.AddFlags(sections.FlagSet("serving"))
	o.addFairnessFlags(sections.FlagSet("serving"))
	o.Tracing.AddFlags(sections.FlagSet("tracing"))
	o.Audit.AddFlags(sections.FlagSet("API audit log"))
	logsapi.AddFlags(o.Logs, sections.FlagSet("logging"))
	sections.FlagSet("logging").Var(&o.LogLevel, "log-level",
		"Least severity that the log shows: info, warning or error. It says nothing of the audit trail, which is always whole.")
	verflag.AddFlags(sections.FlagSet("logging"))
	return sections
}

func (o *Options) addHubFlags(fs *pflag.FlagSet) {
	s := &o.Hub
	fs.StringVar(&s.Namespace, "namespace", s.Namespace,
		"Namespace that the hub runs in: of its ServiceAccount and its lease.")
	fs.StringVar(&s.ServiceAccount, "service-account", s.ServiceAccount,
		"The hub's own ServiceAccount, whose tokens it shows to the cells.")
	fs.StringVar(&s.PipelineAuthentication, "pipeline-authentication-config", s.PipelineAuthentication,
		"File with the AuthenticationConfiguration (apiserver.config.k8s.io/v1) of the CI issuers. Reloaded on change. Empty: no pipeline can authenticate.")
	fs.StringVar(&s.ReporterAudience, "reporter-audience", s.ReporterAudience,
		"Audience of the tokens by which agents report.")
	fs.DurationVar(&s.TokenMaxTTL, "token-max-ttl", s.TokenMaxTTL,
		"Ceiling on the life of every credential, whatever a policy says. At least 10m, the least that Kubernetes issues.")
	fs.DurationVar(&s.StalenessWindow, "staleness-window", s.StalenessWindow,
		"Age at which a cell's last report stops counting.")
	fs.DurationVar(&s.WarmupTimeout, "warmup-timeout", s.WarmupTimeout,
		"How long a new replica waits for a report of every cell before it says that it is ready.")
	fs.BoolVar(&s.LeaderElect, "leader-elect", s.LeaderElect,
		"Run the controllers only while holding the lease. Every replica answers placements.")
}

func (o *Options) addExternalFlags(fs *pflag.FlagSet) {
	s := &o.Hub
	fs.IntVar(&s.ExternalPort, "external-port", s.ExternalPort,
		"Port of the external listener, which serves the OIDC discovery mirror to the cells and takes the posts of pods. It has the direct door's certificate.")
	fs.StringVar(&s.ExternalBindAddress, "external-bind-address", s.ExternalBindAddress,
		"Address of the external listener. Empty: the direct door's.")
	fs.StringVar(&s.ExternalURL, "external-url", s.ExternalURL,
		"The https URL at which the cells, and the pods of targets, reach the external listener. Tokens of pods are for this audience.")
}

func (o *Options) addFairnessFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.MaxInFlight, "max-requests-inflight", o.MaxInFlight,
		"With --max-mutating-requests-inflight: how many requests a replica serves at once. Priority and fairness deals out the sum; without it this many may read.")
	fs.IntVar(&o.MaxMutatingInFlight, "max-mutating-requests-inflight", o.MaxMutatingInFlight,
		"Added to --max-requests-inflight. Without priority and fairness this many may place and report.")
}

// Validate returns what is wrong with the flags.
func (o *Options) Validate() []error {
	var errs []error
	errs = append(errs, o.Serving.Validate()...)
	errs = append(errs, o.Authentication.Validate()...)
	errs = append(errs, o.Authorization.Validate()...)
	errs = append(errs, o.Audit.Validate()...)
	errs = append(errs, o.Features.Validate()...)
	errs = append(errs, o.CoreAPI.Validate()...)
	errs = append(errs, o.Tracing.Validate()...)

	s := o.Hub
	if s.TokenMaxTTL < policy.Floor {
		errs = append(errs, fmt.Errorf("--token-max-ttl is %s: Kubernetes issues no token for less than %s; set at least that", s.TokenMaxTTL, policy.Floor))
	}
	if s.StalenessWindow <= 0 {
		errs = append(errs, fmt.Errorf("--staleness-window is %s: set a positive duration; three heartbeats, 90s, is usual", s.StalenessWindow))
	}
	if s.Namespace == "" || s.ServiceAccount == "" {
		errs = append(errs, errors.New("--namespace and --service-account name the hub's own ServiceAccount; set both"))
	}
	if s.ReporterAudience == "" {
		errs = append(errs, errors.New("--reporter-audience is empty: set the audience that the agents' tokens carry"))
	}
	if !isBareHTTPS(s.ExternalURL) {
		errs = append(errs, errors.New("--external-url must be the https URL, without userinfo, query or fragment, at which the cells reach --external-port"))
	}
	errs = append(errs, validateReplicas(s)...)
	errs = append(errs, validateTargets(s)...)
	if o.MaxInFlight < 1 || o.MaxMutatingInFlight < 1 {
		errs = append(errs, errors.New("--max-requests-inflight and --max-mutating-requests-inflight must be 1 at least: zero would lift the limit where priority and fairness is off"))
	}
	if o.Serving.BindPort == 0 {
		errs = append(errs, errors.New("--secure-port is 0: the hub serves nothing without it"))
	}
	return errs
}

// isBareHTTPS reports whether the text is an https URL without userinfo, query or
// fragment.
func isBareHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// Config returns the configuration of a hub.
func (o *Options) Config() (*hub.Config, error) {
	config := hub.NewConfig(o.Hub)
	config.Pod = hub.Pod{Name: os.Getenv("POD_NAME"), UID: os.Getenv("POD_UID"), IP: os.Getenv("POD_IP")}
	warnOfLongDrain(o.Hub)
	g := config.Generic
	if err := o.Serving.ApplyToConfig(&g.Config); err != nil {
		return nil, fmt.Errorf("serving: %w", err)
	}
	if err := o.Authentication.ApplyTo(&g.Authentication, g.SecureServing, nil); err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	o.Authorization.WithAlwaysAllowPaths(hub.AdmissionPaths()...)
	if err := o.Authorization.ApplyTo(&g.Authorization); err != nil {
		return nil, fmt.Errorf("authorization: %w", err)
	}
	if err := o.Audit.ApplyTo(&g.Config); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if err := applyTracing(o.Tracing, config.Pod, &g.Config); err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	if err := o.CoreAPI.ApplyTo(g); err != nil {
		return nil, fmt.Errorf("hub cluster: %w", err)
	}
	if err := config.ConnectHubCluster(); err != nil {
		return nil, err
	}
	g.MaxRequestsInFlight, g.MaxMutatingRequestsInFlight = o.MaxInFlight, o.MaxMutatingInFlight
	if err := o.Features.ApplyTo(&g.Config, config.HubClient, g.SharedInformerFactory); err != nil {
		return nil, fmt.Errorf("features: %w", err)
	}
	return config, nil
}
