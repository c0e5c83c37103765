package app

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"cellcast.io/cellcast/pkg/hub"
	"cellcast.io/cellcast/pkg/peers"
)

// terminationGrace is what a pod is given to end unless it says otherwise. What
// isn't done by then is killed.
const terminationGrace = 30 * time.Second

func addReplicaFlags(fs *pflag.FlagSet, s *hub.Settings) {
	fs.StringVar(&s.PeerService, "peer-service", s.PeerService,
		"Service of the hub, in --namespace, whose EndpointSlices name the other replicas; reports and reservations are handed to them. Empty: to nobody.")
	fs.StringSliceVar(&s.Peers, "peers", s.Peers,
		"Direct doors of the other replicas, each https://host:port, for a hub that isn't in a pod; then --peer-service isn't looked up.")
	fs.StringVar(&s.PeerCAFile, "peer-ca-file", s.PeerCAFile,
		"File with the PEM certificates that the other replicas' serving certificates are checked against. Empty: they must be the one of --tls-cert-file.")
	fs.StringVar(&s.PeerServerName, "peer-server-name", s.PeerServerName,
		"Name that the other replicas' serving certificates are for. Empty: <peer-service>.<namespace>.svc, or with --peers the host of each.")
	fs.DurationVar(&s.DrainDelay, "drain-delay", s.DrainDelay,
		"How long a replica that is told to end goes on serving, unready, while the Service learns of it.")
	fs.DurationVar(&s.ShutdownTimeout, "shutdown-timeout", s.ShutdownTimeout,
		"How long the requests under way may take after --drain-delay. Both together must be less than the pod's terminationGracePeriodSeconds, 30 by default, with some seconds to spare.")
}

func validateReplicas(s hub.Settings) []error {
	var errs []error
	if s.DrainDelay < 0 {
		errs = append(errs, fmt.Errorf("--drain-delay is %s: it can't be negative", s.DrainDelay))
	}
	if s.ShutdownTimeout < 0 {
		errs = append(errs, fmt.Errorf("--shutdown-timeout is %s: it can't be negative", s.ShutdownTimeout))
	}
	for _, peer := range s.Peers {
		if err := peers.CheckURL(peer); err != nil {
			errs = append(errs, fmt.Errorf("--peers: %w", err))
		}
	}
	return errs
}

// longDrain reports whether a replica takes longer to end than a pod is given
// unless it says otherwise.
func longDrain(s hub.Settings) bool { return s.DrainDelay+s.ShutdownTimeout >= terminationGrace }

func warnOfLongDrain(s hub.Settings) {
	if longDrain(s) {
		klog.InfoS("Ending may take longer than the 30 seconds that a pod is given: set terminationGracePeriodSeconds, or requests are cut off",
			"drainDelay", s.DrainDelay, "shutdownTimeout", s.ShutdownTimeout)
	}
}
