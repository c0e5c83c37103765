package cell_test

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/pkg/cell/celltest"
)

// counting is a hub that is slow, and counts how often it's asked.
type counting struct {
	*celltest.Hub
	took   time.Duration
	canned *authenticationv1.TokenRequestStatus
	asked  int
}

func (c *counting) CreateToken(ctx context.Context, name string, request *authenticationv1.TokenRequest, options metav1.CreateOptions) (*authenticationv1.TokenRequest, error) {
	c.asked++
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(c.took):
	}
	if c.canned != nil {
		return &authenticationv1.TokenRequest{Status: *c.canned}, nil
	}
	return c.Hub.CreateToken(ctx, name, request, options)
}
