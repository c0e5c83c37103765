package hub

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// lease is the name of the lease that the controllers run behind.
const lease = "cellcast-hub"

// newManager returns the manager of the controllers. Its cache, which is one
// watch of each kind of row, runs on every replica and feeds the placements
// too; only the controllers wait for the lease. Losing the lease makes Start
// return an error, and so ends the process: half a hub is worse than a restart.
func (c *Config) newManager() (manager.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(registryv1alpha1.AddToScheme(scheme))

	ctrl.SetLogger(klog.Background())
	config := rest.CopyConfig(c.Generic.ClientConfig)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        klog.Background(),
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
		LeaderElection:                c.LeaderElect,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       c.Namespace,
		LeaderElectionResourceLock:    resourcelock.LeasesResourceLock,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("controller manager: %w", err)
	}
	return mgr, nil
}
