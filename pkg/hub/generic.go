package hub

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/metrics/legacyregistry"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/metrics"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/rest/capacity"
	"cellcast.io/cellcast/pkg/rest/cell"
	"cellcast.io/cellcast/pkg/rest/credential"
	"cellcast.io/cellcast/pkg/rest/launchtarget"
	"cellcast.io/cellcast/pkg/rest/placement"
	"cellcast.io/cellcast/pkg/rest/revocation"
	"cellcast.io/cellcast/pkg/rest/target"
	"cellcast.io/cellcast/pkg/rest/token"
)

// newGeneric makes the API server with everything that it serves.
func (s *Server) newGeneric(ctx context.Context, compiler *policy.Compiler) error {
	generic := s.config.Generic
	if err := s.authenticate(&generic.Authentication); err != nil {
		return err
	}
	if err := s.authorize(&generic.Authorization); err != nil {
		return err
	}
	generic.AddReadyzChecks(healthz.NamedCheck("warm", func(*http.Request) error {
		if s.warmup.ready(s.clock.Now(), s.expected) {
			return nil
		}
		return errors.New("not every cell has reported yet")
	}), healthz.NamedCheck("aggregator", func(*http.Request) error {
		return knows(generic.Authentication.RequestHeaderConfig.CAContentProvider)
	}))

	server, err := generic.Complete().New("cellcast-hub", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	s.generic = server
	if err := s.questions().install(server, s.config); err != nil {
		return fmt.Errorf("API of %s: %w", cellcastv1alpha1.GroupName, err)
	}
	s.installMetrics()
	return s.installAdmission(ctx, compiler)
}

// knows fails until the authority of the hub API server's proxy certificate was
// read, which is a moment after the hub listens. Until then whoever comes through
// that API server would get 401.
func knows(proxy interface {
	VerifyOptions() (x509.VerifyOptions, bool)
}) error {
	if _, known := proxy.VerifyOptions(); !known {
		return errors.New("the authority of the hub API server's proxy certificate hasn't been read yet")
	}
	return nil
}

// strangersAtOnce is how many revocations of callers who don't reach the cell are
// under way at once.
const strangersAtOnce = 4

// questions are the storages behind the API.
func (s *Server) questions() questions {
	cells := credential.Cells(func(row *registryv1alpha1.Cluster) (mint.Cell, error) { return s.clients.For(row) })
	issuer := &credential.Issuer{
		Cells:    cells,
		Capacity: s.index,
		Ceiling:  s.config.TokenMaxTTL,
		Audit:    s.audit,
		Now:      s.clock.Now,
	}
	return questions{
		placements: &placement.Storage{
			View: s.registry.View, Engine: s.engine, Release: s.index.Release, Relay: s.replicas.relay, Unreachable: s.clients.Parked, Warm: s.warm,
			Issuer: issuer, SeesAll: s.seesAll, Audit: s.audit, Now: s.clock.Now,
		},
		cells: &cell.Storage{
			View: s.registry.View, Capacity: s.index, SeesAll: s.seesAll, Now: s.clock.Now,
		},
		cellCapacity: &capacity.Storage{Index: s.index, Relay: s.replicas.relay, Audit: s.audit, Now: s.clock.Now},
		cellToken:    &token.Storage{View: s.registry.View, Engine: s.engine, Issuer: issuer, Audit: s.audit, Now: s.clock.Now},
		revocation: &revocation.Storage{
			View: s.registry.View, Cells: cells, Strangers: make(chan struct{}, strangersAtOnce),
			SeesAll: s.seesAll, Audit: s.audit, Now: s.clock.Now,
		},
		clusterTargets: &target.Storage{},
		targetProbe: &target.ProbeStorage{
			Rows: s.targets.rows, Requests: target.Writer{Client: s.config.Rows.RegistryV1alpha1()}, Audit: s.audit, Now: s.clock.Now,
		},
		targetToken:   &target.TokenStorage{Rows: s.targets.rows, Targets: s.targets, Issuer: issuer},
		launchTargets: &launchtarget.Storage{View: s.registry.View, Targets: s.targets.rows, SeesAll: s.seesAll, Now: s.clock.Now},
	}
}

// seesAll reports whether the caller may list the rows themselves, and so may
// see every cell.
func (s *Server) seesAll(ctx context.Context) bool {
	user, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return false
	}
	decision, _, err := s.generic.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: user, Verb: "list", ResourceRequest: true,
		APIGroup: registryv1alpha1.GroupName, APIVersion: registryv1alpha1.SchemeGroupVersion.Version, Resource: "clusters",
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// installMetrics puts the metrics of all that runs here in the place of the API
// server's own.
func (s *Server) installMetrics() {
	mux := s.generic.Handler.NonGoRestfulMux
	mux.Unregister("/metrics")
	mux.Handle("/metrics", metrics.Handler(legacyregistry.DefaultGatherer, ctrlmetrics.Registry, s.metrics))
}
