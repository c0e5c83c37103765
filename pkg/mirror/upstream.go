package mirror

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/rest"
)

// MaxDocument is the most bytes that a document may have.
const MaxDocument = 256 << 10

// API is the hub's API server as an Upstream. The client's identity needs the
// ClusterRole system:service-account-issuer-discovery.
type API struct {
	Client rest.Interface
}

// Get returns the body at the path, as the server sent it.
func (a API) Get(ctx context.Context, path string) ([]byte, error) {
	body, err := a.Client.Get().AbsPath(path).MaxRetries(0).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(body, MaxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > MaxDocument {
		return nil, fmt.Errorf("it has more than %d bytes", MaxDocument)
	}
	return raw, nil
}
