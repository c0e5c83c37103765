// Package agent is the reporter: it runs in a cell, counts how much of it is
// given away and tells the hub, with every heartbeat, under a token of the
// cell's own.
//
// What isn't certain isn't reported. The first report waits until the whole
// cell was read; an agent that has lost touch with its API server stays
// silent; nothing is buffered for a hub that doesn't answer. The hub then
// takes the cell for Unknown and places nothing on it, which is better than to
// place by stale figures.
//
// Every replica reads the cell and one, the holder of the lease, reports. In
// the namespaces that it's told to, every replica ends revocable credentials
// (package revoker), and the report names those where it does. It may do no more
// than `cellcast register cell` prints, and links nothing that could mint.
package agent

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"cellcast.io/cellcast/pkg/agent/revoker"
)

// revokerPatience is how long the first report waits for the revoker, so that
// it names the namespaces. After that the cell's capacity is reported without.
const revokerPatience = 5 * time.Second

// Config is what an agent needs. The fields aren't checked here: the flags of
// cmd/cellcast-agent are.
type Config struct {
	// Cell is the name of the Cluster on the hub.
	Cell string
	// HubURL is the https URL of the hub's direct door.
	HubURL string
	// HubCAFile holds the PEM certificates that the hub's is checked against;
	// empty means the system's roots.
	HubCAFile string
	// TokenFile holds the reporter's token, for the hub's audience.
	TokenFile string
	// Interval is the time between two reports, give or take a tenth.
	Interval time.Duration
	// HealthAddress is where probes and metrics are served; empty means
	// nowhere.
	HealthAddress string

	// Client reads the cell.
	Client kubernetes.Interface
	// RevocableNamespaces are those in which credentials are ended; usually
	// none.
	RevocableNamespaces []string
	// Metadata lists, watches and deletes the Secrets there. It may be nil when
	// there are none.
	Metadata metadata.Interface
	// Leases holds the lease; nil means that this is the only replica. Its
	// requests should time out well within the ten seconds that a renewal has.
	Leases coordination.LeasesGetter
	// Namespace is where the Lease is.
	Namespace string
	// Identity tells the replicas apart.
	Identity string
}

// Agent is a reporter.
type Agent struct {
	config   Config
	view     *view
	revoker  *revoker.Revoker
	reporter *reporter
}

// New returns an agent that is ready to run.
func New(config Config) (*Agent, error) {
	view, err := newView(config.Client)
	if err != nil {
		return nil, err
	}
	credentials, err := revoker.New(config.Metadata, config.RevocableNamespaces)
	if err != nil {
		return nil, err
	}
	return &Agent{
		config:  config,
		view:    view,
		revoker: credentials,
		reporter: &reporter{
			cell:      config.Cell,
			total:     view.total,
			revocable: credentials.Promised,
			hub:       &hub{url: config.HubURL, caFile: config.HubCAFile, tokenFile: config.TokenFile},
			pace:      pace{interval: config.Interval, random: rand.Float64},
			metrics:   newMetrics(credentials),
		},
	}, nil
}

// Run reports, and ends credentials, until ctx is done, and then returns nil. It
// returns LeaseLostError when it lost the lease, and another error when it can't
// serve its probes.
func (a *Agent) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		a.view.run(ctx)
		return nil
	})
	group.Go(func() error {
		a.revoker.Run(ctx)
		return nil
	})
	if a.config.HealthAddress != "" {
		group.Go(func() error {
			return serveHealth(ctx, a.config.HealthAddress, healthHandler(a.view.ready, a.reporter.metrics.registry))
		})
	}
	group.Go(func() error { return a.report(ctx) })
	return group.Wait()
}

// report waits until the cell was read and, where there are replicas, for the
// lease; then it reports.
func (a *Agent) report(ctx context.Context) error {
	if !a.view.waitForSync(ctx) {
		return nil
	}
	klog.FromContext(ctx).Info("The cell was read", "cell", a.config.Cell)
	patience, cancel := context.WithTimeout(ctx, revokerPatience)
	a.revoker.WaitForSync(patience)
	cancel()
	if a.config.Leases == nil {
		a.reporter.run(ctx)
		return nil
	}
	return lease{
		client:    a.config.Leases,
		namespace: a.config.Namespace,
		identity:  a.config.Identity,
	}.hold(ctx, a.reporter.run)
}
