package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"k8s.io/utils/ptr"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// lease is the name of the lease that the controllers run behind.
const lease = "cellcast-hub"

const (
	// The times of the lease let its holder miss an API server or an etcd that is
	// away for ten seconds, and one more try after it. Nobody waits for a leader:
	// every replica answers, and the controllers write conditions and events.
	leaseDuration = 30 * time.Second
	renewDeadline = 20 * time.Second
	retryPeriod   = 4 * time.Second
	// controllersEnd is how long the controllers may take to end. With the drain
	// before it, all must fit into the thirty seconds that a pod is given.
	controllersEnd = 3 * time.Second
)

// newManager returns the manager of the controllers. Its cache, which is one
// watch of each kind of row, runs on every replica and feeds the placements
// too; only the controllers wait for the lease. Losing the lease makes Start
// return an error, and so ends the process: half a hub is worse than a restart.
func (c *Config) newManager() (manager.Manager, error) {
	ctrl.SetLogger(klog.Background())
	mgr, err := ctrl.NewManager(rest.CopyConfig(c.Generic.ClientConfig), c.managerOptions())
	if err != nil {
		return nil, fmt.Errorf("controller manager: %w", err)
	}
	return mgr, nil
}

func (c *Config) managerOptions() ctrl.Options {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(registryv1alpha1.AddToScheme(scheme))
	return ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{DefaultTransform: lean},
		Logger:                        klog.Background(),
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
		LeaderElection:                c.LeaderElect,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       c.Namespace,
		LeaderElectionResourceLock:    resourcelock.LeasesResourceLock,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(leaseDuration),
		RenewDeadline:                 ptr.To(renewDeadline),
		RetryPeriod:                   ptr.To(retryPeriod),
		GracefulShutdownTimeout:       ptr.To(controllersEnd),
	}
}

// lean takes from a row what the hub reads nowhere and others may fill: annotations,
// among them the copy that kubectl apply keeps, and who manages which field. Rows
// from the cache are changed by patches that say the difference, and are never
// written whole.
func lean(object any) (any, error) {
	if row, ok := object.(client.Object); ok {
		row.SetAnnotations(nil)
		row.SetManagedFields(nil)
	}
	return object, nil
}

// runControllers runs the manager until ctx is done.
func (s *Server) runControllers(ctx context.Context) error {
	err := s.manager.Start(ctx)
	switch {
	case err == nil && ctx.Err() != nil:
		return nil
	case err == nil:
		return errors.New("controllers: they ended")
	case strings.Contains(err.Error(), "leader election lost"): // controller-runtime has no type for it
		return fmt.Errorf("the lease %s/%s is lost: it couldn't be renewed for %s, so another replica may lead; this one ends and is to be restarted: %w",
			s.config.Namespace, lease, renewDeadline, err)
	default:
		return fmt.Errorf("controllers: %w", err)
	}
}
