package hub

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/version"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/events"
	"cellcast.io/cellcast/pkg/metrics"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/registry"
)

// Server is a hub that is ready to run.
type Server struct {
	config   *Config
	clock    clock.WithTicker
	manager  manager.Manager
	generic  *genericapiserver.GenericAPIServer
	external *external

	registry  *registry.Registry
	index     *capacity.Index
	engine    *placement.Engine
	clients   *cell.Clients
	targets   *targets
	pipelines *caller.Pipelines
	reporters reporterKeys
	replicas  *replicas
	issuer    *hubIssuer
	audit     audit.Sink
	events    *events.Events
	metrics   *prometheus.Registry
	warmup    *warmup
	rebuilt   chan event.GenericEvent
}

// New puts the hub together. It reads the trusted issuers and nothing else that
// could be away: a hub starts while its cells are down.
func (c Completed) New(ctx context.Context) (*Server, error) {
	s := &Server{
		config:  c.Config,
		clock:   clock.RealClock{},
		metrics: prometheus.NewRegistry(),
		rebuilt: make(chan event.GenericEvent, 1),
	}
	now := s.clock.Now()
	s.warmup = newWarmup(now, c.WarmupTimeout, c.StalenessWindow)
	s.index = capacity.New(capacity.Options{Window: c.StalenessWindow}, now)
	s.engine = placement.New(s.index, nil)

	var err error
	if s.manager, err = c.newManager(); err != nil {
		return nil, err
	}
	compiler, err := policy.NewCompiler()
	if err != nil {
		return nil, fmt.Errorf("policy compiler: %w", err)
	}
	if s.audit, s.events, err = s.newAudit(os.Stdout); err != nil {
		return nil, err
	}
	s.registry = registry.New(s.manager.GetCache(), compiler, s.engine, s.onRebuilt)
	tokens, err := c.newTokens()
	if err != nil {
		return nil, err
	}
	s.clients = c.newClients(tokens)
	s.issuer = &hubIssuer{api: c.HubClient.Discovery().RESTClient()}
	s.reporters = reporterKeys{clients: s.clients}
	if s.pipelines, err = caller.NewPipelines(ctx, caller.PipelineOptions{
		File: c.PipelineAuthentication, OnReload: metrics.NewReloads(s.metrics, s.clock.Now).Observe,
	}); err != nil {
		return nil, err
	}
	if s.targets, err = s.newTargets(tokens); err != nil {
		return nil, err
	}
	if s.replicas, err = s.newReplicas(tokens); err != nil {
		return nil, err
	}
	if err := s.newGeneric(ctx, compiler); err != nil {
		return nil, err
	}
	s.installRelay()
	if err := s.addControllers(); err != nil {
		return nil, err
	}
	s.external, err = s.newExternal(ctx)
	return s, err
}

// newTokens returns the source of the hub's own tokens, which it asks its API
// server for: one for each cell, and one for its peers.
func (c Completed) newTokens() (*cell.Tokens, error) {
	return cell.NewTokens(c.HubClient.CoreV1().ServiceAccounts(c.Namespace), cell.TokenOptions{
		ServiceAccount: c.ServiceAccount,
		PodName:        c.Pod.Name,
		PodUID:         types.UID(c.Pod.UID),
	})
}

// newClients returns the hub's clients of the cells.
func (c Completed) newClients(tokens *cell.Tokens) *cell.Clients {
	return cell.NewClients(tokens, cell.Options{
		Version: version.Get().GitVersion, Tracing: c.Generic.TracerProvider,
		Reserved: []string{caller.PeerAudience, c.ReporterAudience, c.Targets.Vault.Audience},
	})
}

// Run serves until ctx is done, or until a part of the hub can't go on. Either
// way the requests under way are finished first; the error says which part it
// was.
func (s *Server) Run(ctx context.Context) error {
	return serveOn(ctx, s.serve,
		s.runControllers,
		func(ctx context.Context) error { s.pipelines.Run(ctx); return nil },
		func(ctx context.Context) error { s.events.Run(ctx); return nil },
		s.replicas.run,
		s.targets.run,
		s.external.run,
	)
}

// serve answers once the rows were read: before, every caller would be refused
// for want of a policy, which clients take for an answer that stays.
func (s *Server) serve(ctx context.Context) error {
	select {
	case <-s.registry.Read():
		return drainWithin(ctx, s.config.DrainDelay+s.config.ShutdownTimeout, s.generic.PrepareRun().RunWithContext)
	case <-ctx.Done():
		return nil
	}
}

func (s *Server) warm(now time.Time) bool { return s.warmup.warm(now, s.expected) }
