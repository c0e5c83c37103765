package hub

import (
	"context"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/keyset"
)

// reporterKeys says where the keys of a cell's reporter are read.
type reporterKeys struct {
	clients *cell.Clients
}

var _ caller.ReporterKeys = reporterKeys{}

// Keys returns a key set of the cell's reporter that has read nothing yet.
func (r reporterKeys) Keys(cluster *registryv1alpha1.Cluster) (caller.KeySet, error) {
	fetch, err := r.fetch(cluster)
	if err != nil {
		return nil, err
	}
	return keyset.New(fetch, keyset.Options{}), nil
}

// Readable reads the keys of the cell's reporter once, for the condition.
func (r reporterKeys) Readable(ctx context.Context, cluster *registryv1alpha1.Cluster) error {
	fetch, err := r.fetch(cluster)
	if err != nil {
		return err
	}
	document, err := fetch(ctx)
	if err != nil {
		return err
	}
	_, err = keyset.Parse(document)
	return err
}

func (r reporterKeys) fetch(cluster *registryv1alpha1.Cluster) (keyset.Fetch, error) {
	switch reporter := cluster.Spec.Reporter; reporter.Keys {
	case registryv1alpha1.ReporterKeysDiscovery:
		client, err := keyset.Client(nil)
		if err != nil {
			return nil, err
		}
		return keyset.Discovery(client, reporter.Issuer, ""), nil
	default: // the cell itself: it's asked as the hub, at its registered endpoint
		return func(ctx context.Context) ([]byte, error) {
			client, err := r.clients.For(cluster)
			if err != nil {
				return nil, err
			}
			return client.JWKS(ctx)
		}, nil
	}
}
