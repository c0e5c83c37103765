package app

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"cellcast.io/cellcast/pkg/agent"
)

// leaseTimeout bounds a request for the Lease: half of what a renewal has, so
// that one that hangs doesn't cost the lease.
const leaseTimeout = 5 * time.Second

// Config returns the agent's configuration, with clients of the cell. The
// options must be valid.
func (o *Options) Config() (agent.Config, error) {
	cell, err := o.connection()
	if err != nil {
		return agent.Config{}, err
	}
	client, err := kubernetes.NewForConfig(cell)
	if err != nil {
		return agent.Config{}, fmt.Errorf("preparing the client of the cell: %w", err)
	}
	config := agent.Config{
		Cell:      o.Cell,
		HubURL:    o.Hub,
		HubCAFile: o.HubCA,
		TokenFile: o.TokenFile,
		Interval:  o.Interval,
		Client:    client,
	}
	if len(o.RevocableNamespaces) > 0 {
		config.RevocableNamespaces = o.RevocableNamespaces
		// A credential's end can't wait for client-go's own limit of five
		// requests a second; the API server's priority and fairness holds.
		unlimited := rest.CopyConfig(cell)
		unlimited.QPS = -1
		if config.Metadata, err = metadata.NewForConfig(unlimited); err != nil {
			return agent.Config{}, fmt.Errorf("preparing the client of the Secrets: %w", err)
		}
	}
	if o.HealthBindAddress != off {
		config.HealthAddress = o.HealthBindAddress
	}
	if o.LeaderElect {
		if err := o.addLease(&config, *cell); err != nil {
			return agent.Config{}, err
		}
	}
	return config, nil
}

func (o *Options) addLease(config *agent.Config, cell rest.Config) error {
	cell.Timeout = leaseTimeout
	client, err := kubernetes.NewForConfig(&cell)
	if err != nil {
		return fmt.Errorf("preparing the client of the lease: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this replica: %w", err)
	}
	config.Leases = client.CoordinationV1()
	config.Namespace = o.Namespace
	config.Identity = host + "_" + string(uuid.NewUUID())
	return nil
}

// connection is how the cell's API server is reached. Protobuf costs less than
// JSON to decode, and a cell has many pods.
func (o *Options) connection() (*rest.Config, error) {
	var config *rest.Config
	var err error
	if o.Kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("there is no --kubeconfig, and no ServiceAccount of a cell to use in its place: %w", err)
		}
	} else if config, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig); err != nil {
		return nil, fmt.Errorf("reading --kubeconfig: %w", err)
	}
	config.UserAgent = "cellcast-agent"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config, nil
}
