package hub

import (
	"context"
	"encoding/json"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/ingest"
	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/pkg/podidentity"
	"cellcast.io/cellcast/pkg/probe/contract"
	"cellcast.io/cellcast/pkg/registry"
)

// podSources are the ways to what proves pods.
type podSources struct {
	targets *targets
	view    func() *registry.View
	cells   *cell.Clients
}

var _ podidentity.Sources = podSources{}

// Keys reads the keys of a brought target with its registered credential.
func (s podSources) Keys(r podidentity.Registration) keyset.Fetch {
	return func(ctx context.Context) ([]byte, error) {
		row, ok := s.targets.rows.by(ctx, targetByUID, string(r.Target.UID))
		if !ok {
			return nil, fmt.Errorf("%s is gone", r.Target)
		}
		c, err := s.targets.reach(ctx, row)
		if err != nil {
			return nil, err
		}
		return c.client.JWKS(ctx)
	}
}

// Reviewer asks a cell of the fleet.
func (s podSources) Reviewer(r podidentity.Registration) podidentity.Reviewer {
	return cellReviewer{s, r.Target}
}

// canaries are the pods that probes have started, by the rows of their targets.
type canaries struct {
	targets *targets
	status  client.SubResourceWriter
}

var (
	_ ingest.Pods     = canaries{}
	_ ingest.Receiver = canaries{}
)

// Pod returns the canary of this name, if its run is under way.
func (c canaries) Pod(ctx context.Context, name string) (ingest.Expected, bool) {
	row, ok := c.targets.rows.by(ctx, targetByCanary, name)
	if !ok || row.Status.Identity == nil {
		return ingest.Expected{}, false
	}
	server, caBundle := c.targets.endpoint(row.UID)
	return ingest.Expected{
		Registration: podidentity.Registration{
			Target:   podidentity.Target{UID: row.UID, Mode: podidentity.ModeJWKS},
			Endpoint: server, CABundle: caBundle,
			Issuer: row.Status.Identity.Issuer, Audience: row.Status.Identity.Audience,
			Namespace: row.Spec.Namespace, ServiceAccount: contract.ServiceAccountName(row.Spec),
		},
		UID: row.Status.Run.Canary.PodUID, Run: row.Status.Run.ID, Target: registryv1alpha1.TargetAddress(row.UID),
	}, true
}

// Receive writes into the row that the canary's post has come, unless the run is
// over: the leader, on whichever replica, waits for it.
func (c canaries) Receive(ctx context.Context, post ingest.Post) (news bool, err error) {
	row, ok := c.targets.rows.by(ctx, targetByCanary, post.Pod.Name)
	if !ok {
		return false, fmt.Errorf("the run of canary %s is over", post.Pod.Name)
	}
	if row.Status.Run.Canary.ReceivedAt != nil {
		return false, nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/status/run/id", "value": post.Run},
		{"op": "test", "path": "/status/run/canary/podUID", "value": post.Pod.UID},
		{"op": "add", "path": "/status/run/canary/receivedAt", "value": metav1.NewTime(post.At).Rfc3339Copy()},
	})
	if err != nil {
		return false, err
	}
	stub := &registryv1alpha1.ClusterTarget{ObjectMeta: metav1.ObjectMeta{Namespace: row.Namespace, Name: row.Name}}
	if err := c.status.Patch(ctx, stub, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return false, fmt.Errorf("write the receipt of canary %s into ClusterTarget %s/%s: %w", post.Pod.Name, row.Namespace, row.Name, err)
	}
	return true, nil
}

// cellReviewer finds the cell by its UID when it's asked: a row that was made anew
// is another cell.
type cellReviewer struct {
	podSources
	target podidentity.Target
}

// CreateTokenReview asks the cell.
func (r cellReviewer) CreateTokenReview(ctx context.Context, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	for _, row := range r.view().Clusters {
		if row.UID != r.target.UID {
			continue
		}
		client, err := r.cells.For(row)
		if err != nil {
			return nil, err
		}
		return client.CreateTokenReview(ctx, review)
	}
	return nil, fmt.Errorf("%s is gone", r.target)
}
