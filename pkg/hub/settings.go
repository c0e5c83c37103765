package hub

import "time"

// Settings are what an operator decides about a hub.
type Settings struct {
	// Namespace and ServiceAccount are the hub's own identity in its cluster.
	Namespace, ServiceAccount string
	// PipelineAuthentication is the file with the AuthenticationConfiguration of
	// the CI issuers; empty lets no pipeline in.
	PipelineAuthentication string
	// ReporterAudience is the audience of the agents' tokens.
	ReporterAudience string
	// TokenMaxTTL is the ceiling on the life of every credential.
	TokenMaxTTL time.Duration
	// StalenessWindow is the age at which a report stops counting.
	StalenessWindow time.Duration
	// WarmupTimeout bounds how long a new replica stays unready.
	WarmupTimeout time.Duration
	// DrainDelay is how long a replica that ends goes on serving, unready, while
	// its address is taken out of the Service; ShutdownTimeout is how long the
	// requests under way may take from then on.
	DrainDelay, ShutdownTimeout time.Duration
	// LeaderElect puts the controllers, and nothing else, behind a lease.
	LeaderElect bool
	// ExternalPort is the port of the external listener.
	ExternalPort int
	// ExternalURL is where the cells reach it.
	ExternalURL string
	// ExternalBindAddress is the address of the external listener; empty means
	// the direct door's.
	ExternalBindAddress string
	// Targets are the settings of brought targets.
	Targets TargetSettings
	// PeerService is the hub's own Service, whose EndpointSlices name the other
	// replicas. Peers are their direct doors instead, where the hub isn't in a
	// pod. With neither, nothing is handed to anybody.
	PeerService string
	Peers       []string
	// PeerCAFile is what the replicas' certificates are checked against; empty
	// means that all of them have this one's. PeerServerName is the name that
	// they are for; empty means the Service's, or the host of each of Peers.
	PeerCAFile, PeerServerName string
}

// DefaultSettings are those of a hub with three heartbeats of staleness and an
// hour of ceiling.
func DefaultSettings() Settings {
	return Settings{
		Namespace:        "cellcast-system",
		ServiceAccount:   "cellcast-hub",
		ReporterAudience: "cellcast.io/reports",
		TokenMaxTTL:      time.Hour,
		StalenessWindow:  90 * time.Second,
		WarmupTimeout:    60 * time.Second,
		DrainDelay:       10 * time.Second,
		ShutdownTimeout:  15 * time.Second,
		PeerService:      "cellcast-hub",
		LeaderElect:      true,
		ExternalPort:     9443,
		Targets:          defaultTargetSettings(),
	}
}

// Pod is the pod that the hub runs in, to which its own tokens are bound; empty
// outside of one.
type Pod struct{ Name, UID, IP string }
