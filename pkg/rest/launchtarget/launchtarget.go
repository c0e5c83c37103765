// Package launchtarget answers what a caller may launch onto: the read-only
// storage behind launchtargets.cellcast.io. It lists the cells of the fleet that
// a policy permits and the brought targets whose owner covers the caller, in
// whatever namespace they are, each with its state and, in words, the rule on
// secrets that holds there. Each answer is computed for its caller.
//
// What a caller may not launch onto isn't listed: neither a cell that no policy
// permits, except to who may see every cell, nor a target of somebody else.
package launchtarget

import (
	"context"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/registry"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/rest/resource"
)

// Targets are the registered brought targets, as this replica knows them.
type Targets interface {
	// List returns the rows of all namespaces, which must not be changed.
	List(ctx context.Context) []*registryv1alpha1.ClusterTarget
}

// Storage answers list of launch targets.
type Storage struct {
	resource.LaunchTarget

	// View returns the cells and policies as they are now.
	View    func() *registry.View
	Targets Targets
	// SeesAll reports whether the caller may see every cell.
	SeesAll func(ctx context.Context) bool
	Now     func() time.Time
}

var (
	_ rest.Storage              = &Storage{}
	_ rest.Scoper               = &Storage{}
	_ rest.SingularNameProvider = &Storage{}
	_ rest.Lister               = &Storage{}
)

// New returns an empty LaunchTarget.
func (*Storage) New() runtime.Object { return &cellcastv1alpha1.LaunchTarget{} }

// NewList returns an empty LaunchTargetList.
func (*Storage) NewList() runtime.Object { return &cellcastv1alpha1.LaunchTargetList{} }

// List returns the cells, and then the brought targets, each by name. A list is
// computed whole: limit and continue have no meaning here and are ignored.
func (s *Storage) List(ctx context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	c, err := call.From(ctx, s.Now())
	if err != nil {
		return nil, err
	}
	selector := labels.Everything()
	if options != nil && options.LabelSelector != nil {
		selector = options.LabelSelector
	}
	var selects fieldSelector
	if options != nil && options.FieldSelector != nil {
		if selects, err = parseFields(options.FieldSelector); err != nil {
			return nil, c.Answer(ctx, err)
		}
	}
	list := &cellcastv1alpha1.LaunchTargetList{Items: []cellcastv1alpha1.LaunchTarget{}}
	add := func(found []cellcastv1alpha1.LaunchTarget) {
		for _, item := range found {
			if selector.Matches(labels.Set(item.Labels)) && selects.matches(&item) {
				list.Items = append(list.Items, item)
			}
		}
	}
	view := s.View()
	add(cells(view.Clusters, view.Policies.Reachable(c.Caller.Caller), s.SeesAll(ctx)))
	add(targets(s.Targets.List(ctx), c.Caller.Caller))
	return list, nil
}
