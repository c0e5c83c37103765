// Package cell answers which cells a caller may reach and how full they are:
// the read-only storage behind cells.cellcast.io. Each answer is computed for
// its caller; there is nothing to watch and nothing is kept.
//
// A cell that the caller may not reach is answered like one that isn't
// registered, so that asking by name tells nothing.
package cell

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/registry"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/rest/resource"
)

// Capacity is what is known of how full a cell is.
type Capacity interface {
	Describe(cell string, now time.Time) (capacity.Description, bool)
}

// Storage answers get and list of cells.
type Storage struct {
	resource.Cell

	// View returns the rows as they are now.
	View     func() *registry.View
	Capacity Capacity
	// SeesAll reports whether the caller may see every cell.
	SeesAll func(ctx context.Context) bool
	Now     func() time.Time
}

var (
	_ rest.Storage              = &Storage{}
	_ rest.Scoper               = &Storage{}
	_ rest.SingularNameProvider = &Storage{}
	_ rest.Getter               = &Storage{}
	_ rest.Lister               = &Storage{}
)

// New returns an empty Cell.
func (*Storage) New() runtime.Object { return &cellcastv1alpha1.Cell{} }

// NewList returns an empty CellList.
func (*Storage) NewList() runtime.Object { return &cellcastv1alpha1.CellList{} }

// Get returns the cell of this name as the caller may see it.
func (s *Storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	c, err := call.From(ctx, s.Now())
	if err != nil {
		return nil, err
	}
	view := s.View()
	if cluster, ok := view.Cluster(name); ok {
		if cell, ok := s.see(cluster, view.Policies.Reachable(c.Caller.Caller), s.SeesAll(ctx), c.Started); ok {
			return cell, nil
		}
	}
	return nil, apierrors.NewNotFound(cellcastv1alpha1.Resource("cells"), name)
}

// List returns the cells that the caller may see. A list is computed whole:
// limit and continue have no meaning here and are ignored.
func (s *Storage) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	c, err := call.From(ctx, s.Now())
	if err != nil {
		return nil, err
	}
	selector, byField := labels.Everything(), fields.Everything()
	if options != nil && options.LabelSelector != nil {
		selector = options.LabelSelector
	}
	if options != nil && options.FieldSelector != nil {
		byField = options.FieldSelector
	}
	view := s.View()
	reachable, all := view.Policies.Reachable(c.Caller.Caller), s.SeesAll(ctx)
	list := &cellcastv1alpha1.CellList{Items: []cellcastv1alpha1.Cell{}}
	for _, cluster := range view.Clusters {
		if !selector.Matches(labels.Set(cluster.Labels)) || !byField.Matches(fields.Set{"metadata.name": cluster.Name}) {
			continue
		}
		if cell, ok := s.see(cluster, reachable, all, c.Started); ok {
			list.Items = append(list.Items, *cell)
		}
	}
	return list, nil
}

// see returns the cell as a caller sees it whom these policies may govern.
func (s *Storage) see(cluster *registryv1alpha1.Cluster, reachable []*policy.Policy, all bool, now time.Time) (*cellcastv1alpha1.Cell, bool) {
	permits := registry.Permitting(reachable, cluster)
	if len(permits) == 0 && !all {
		return nil, false
	}
	load, known := s.Capacity.Describe(cluster.Name, now)
	if !known { // registered this very moment
		load.Health = cellcastv1alpha1.CapacityUnknown
	}
	cell := &cellcastv1alpha1.Cell{
		ObjectMeta: metav1.ObjectMeta{
			Name:              cluster.Name,
			Labels:            cluster.Labels,
			CreationTimestamp: cluster.CreationTimestamp,
		},
		Status: cellcastv1alpha1.CellStatus{
			State:              string(cluster.Spec.State),
			Capacity:           load.Health,
			UtilisationPercent: load.Utilisation.Percent(),
			WorstResource:      string(load.Utilisation.Resource),
			Policies:           permits,
		},
	}
	if !load.ReceivedAt.IsZero() {
		cell.Status.ReportedAt = &metav1.Time{Time: load.ReceivedAt}
	}
	return cell, true
}
