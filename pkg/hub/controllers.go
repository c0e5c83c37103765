package hub

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	clustercontroller "cellcast.io/cellcast/pkg/controller/cluster"
	targetcontroller "cellcast.io/cellcast/pkg/controller/clustertarget"
	policycontroller "cellcast.io/cellcast/pkg/controller/placementpolicy"
	"cellcast.io/cellcast/pkg/registry"
)

// addControllers adds what the manager runs: the registry on every replica, the
// reconcilers behind the lease.
func (s *Server) addControllers() error {
	if err := s.manager.Add(s.registry); err != nil {
		return err
	}
	clusters := &clustercontroller.Reconciler{
		Client: s.manager.GetClient(),
		Cells:  clustercontroller.Look{Clients: s.clients, Readable: s.reporters.Readable, HubIssuer: s.issuer.get},
		Clock:  s.clock,
		Audit:  s.audit,
	}
	if err := clusters.SetupWithManager(s.manager); err != nil {
		return err
	}
	if err := s.addTargets(); err != nil {
		return err
	}
	policies := &policycontroller.Reconciler{
		Client:  s.manager.GetClient(),
		View:    standings{s.registry},
		Issuers: s.pipelines,
		Audit:   s.audit,
		Clock:   s.clock,
	}
	rebuilt := source.Channel(s.rebuilt, handler.EnqueueRequestsFromMapFunc(policycontroller.EveryPolicy(s.manager.GetCache())))
	return policies.SetupWithManager(s.manager, rebuilt)
}

// addTargets adds what keeps the rows of brought targets, and what lets go of
// them.
func (s *Server) addTargets() error {
	if err := s.targets.rows.index(context.Background(), s.manager.GetFieldIndexer()); err != nil {
		return err
	}
	if err := s.manager.Add(farewells{s.targets}); err != nil {
		return err
	}
	return targetcontroller.New(targetcontroller.Config{
		Client:   s.manager.GetClient(),
		Prober:   prober{s.targets, s.config.Targets, s.config.ExternalURL},
		Targets:  s.targets,
		Clusters: targetcontroller.ClusterRows{Reader: s.manager.GetCache()},
		Audit:    s.audit,
		Clock:    s.clock,
		Rescan:   s.config.Targets.Rescan,
	}).SetupWithManager(s.manager)
}

// onRebuilt forgets what belongs to cells that are gone, and wakes the
// controllers. It doesn't wait for them: on a replica without the lease nobody
// listens, and one event waiting says all.
func (s *Server) onRebuilt(gone []string) {
	for _, cell := range gone {
		s.clients.Forget(cell)
	}
	select {
	case s.rebuilt <- event.GenericEvent{Object: &registryv1alpha1.PlacementPolicy{}}:
	default:
	}
}

// standings is how the view reads each policy.
type standings struct{ registry *registry.Registry }

func (s standings) Standing(name string) (policycontroller.Standing, bool) {
	view := s.registry.View()
	entry, ok := view.Entry(name)
	if !ok {
		return policycontroller.Standing{}, false
	}
	standing := policycontroller.Standing{Generation: entry.Generation}
	if entry.Policy == nil {
		standing.Invalid = entry.Errors.ToAggregate().Error()
		return standing, true
	}
	standing.Matched = view.Matched(entry.Policy)
	standing.Issuers = entry.Policy.Issuers()
	standing.Tied = view.Policies.Ambiguous(entry.Policy)
	return standing, true
}

// clusterLister lists the registered cells for the webhook.
type clusterLister struct{ registry *registry.Registry }

func (l clusterLister) List(selector labels.Selector) ([]*registryv1alpha1.Cluster, error) {
	var rows []*registryv1alpha1.Cluster
	for _, row := range l.registry.View().Clusters {
		if selector.Matches(labels.Set(row.Labels)) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}
