package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/cell"
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
	pipelines *caller.Pipelines
	reporters reporterKeys
	issuer    *hubIssuer
	audit     audit.Sink
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
	s.warmup = &warmup{started: now, timeout: c.WarmupTimeout, grace: c.StalenessWindow}
	trail := audit.NewWriter(os.Stdout, func(err error) { klog.ErrorS(err, "An audit record was lost") })
	s.audit = audit.Tee{trail, metrics.NewRecords(s.metrics)}
	s.metrics.MustRegister(metrics.Reports(s.reports), metrics.NewLost(trail.Lost))
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
	s.registry = registry.New(s.manager.GetCache(), compiler, s.engine, s.onRebuilt)
	if s.clients, err = c.newClients(); err != nil {
		return nil, err
	}
	s.issuer = &hubIssuer{api: c.HubClient.Discovery().RESTClient()}
	s.reporters = reporterKeys{clients: s.clients}
	if s.pipelines, err = caller.NewPipelines(ctx, caller.PipelineOptions{File: c.PipelineAuthentication}); err != nil {
		return nil, err
	}
	if err := s.newGeneric(ctx, compiler); err != nil {
		return nil, err
	}
	if err := s.addControllers(); err != nil {
		return nil, err
	}
	s.external, err = s.newExternal(ctx)
	return s, err
}

// newClients returns the hub's clients of the cells, each with tokens of the
// hub's own that it asks its API server for.
func (c Completed) newClients() (*cell.Clients, error) {
	tokens, err := cell.NewTokens(c.HubClient.CoreV1().ServiceAccounts(c.Namespace), cell.TokenOptions{
		ServiceAccount: c.ServiceAccount,
		PodName:        c.Pod.Name,
		PodUID:         types.UID(c.Pod.UID),
	})
	if err != nil {
		return nil, err
	}
	return cell.NewClients(tokens, cell.Options{Version: version.Get().GitVersion}), nil
}

// Run serves until ctx is done, or until a part of the hub can't go on: then
// the others end too, and the error says which it was.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := s.manager.Start(ctx)
		if err == nil && ctx.Err() == nil {
			err = errors.New("the controllers ended")
		}
		if err != nil {
			return fmt.Errorf("controllers: %w", err)
		}
		return nil
	})
	group.Go(func() error { s.pipelines.Run(ctx); return nil })
	group.Go(func() error { return s.external.run(ctx) })
	group.Go(func() error { return s.serve(ctx) })
	return group.Wait()
}

// serve answers once the rows were read: before, every caller would be refused
// for want of a policy, which clients take for an answer that stays.
func (s *Server) serve(ctx context.Context) error {
	select {
	case <-s.registry.Read():
		return s.generic.PrepareRun().RunWithContext(ctx)
	case <-ctx.Done():
		return nil
	}
}

// expected counts the cells that should have reported by now: those that name
// a reporter and aren't draining.
func (s *Server) expected() (missing, reported int) {
	view, now := s.registry.View(), s.clock.Now()
	for _, row := range view.Clusters {
		if row.Spec.Reporter == nil || row.Spec.State == registryv1alpha1.StateDraining {
			continue
		}
		if d, ok := s.index.Describe(row.Name, now); ok && d.Health == cellcastv1alpha1.CapacityFresh {
			reported++
		} else {
			missing++
		}
	}
	return missing, reported
}

// reports is when each registered cell last reported.
func (s *Server) reports() []metrics.Report {
	var all []metrics.Report
	now := s.clock.Now()
	for _, row := range s.registry.View().Clusters {
		if d, ok := s.index.Describe(row.Name, now); ok && !d.ReceivedAt.IsZero() {
			all = append(all, metrics.Report{Cell: row.Name, Age: now.Sub(d.ReceivedAt)})
		}
	}
	return all
}

func (s *Server) warm(now time.Time) bool { return s.warmup.warm(now, s.expected) }
