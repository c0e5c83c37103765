// Package target answers the questions about brought targets: the create-only
// storages behind clustertargets/probe and clustertargets/token, and their
// parent, which has no verbs. The rows themselves are the registry's.
//
// Who may ask about a target in which namespace was settled by the hub's RBAC
// before a request gets here. A token is for those alone whom the target's owner
// covers, and only while the target is proven as its row is now: there is no
// policy, the rule of the owner is the policy.
package target

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/rest/resource"
)

// Rows are the registered targets, as this replica knows them.
type Rows interface {
	// Target returns the row, which must not be changed.
	Target(ctx context.Context, namespace, name string) (*registryv1alpha1.ClusterTarget, bool)
}

// Storage is the parent of the questions.
type Storage struct{ resource.ClusterTarget }

var (
	_ rest.Storage              = &Storage{}
	_ rest.Scoper               = &Storage{}
	_ rest.SingularNameProvider = &Storage{}
)

// New returns an empty ClusterTarget.
func (*Storage) New() runtime.Object { return &cellcastv1alpha1.ClusterTarget{} }

// find returns the row that a question was sent for. inside is the name in the
// question's own metadata, which may be left out.
func find(ctx context.Context, rows Rows, p *place, inside string) (*registryv1alpha1.ClusterTarget, error) {
	if inside != "" && inside != p.name {
		return nil, refusal.Invalid("metadata.name", "is %q, and the request was sent for target %q: name one target", inside, p.name)
	}
	row, ok := rows.Target(ctx, p.namespace, p.name)
	if !ok {
		return nil, notFound(p.name)
	}
	return row, nil
}

func notFound(name string) error {
	return apierrors.NewNotFound(cellcastv1alpha1.Resource("clustertargets"), name)
}
