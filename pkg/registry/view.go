package registry

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/policy"
)

// View is the rows at one moment. Nothing in it may be changed.
type View struct {
	// Clusters are the registered cells in the order of their names.
	Clusters []*registryv1alpha1.Cluster
	// Policies decides which policy governs.
	Policies *policy.Set

	byName  map[string]*registryv1alpha1.Cluster
	entries map[string]*Entry
}

func newView(clusters []*registryv1alpha1.Cluster, entries []*Entry) *View {
	v := &View{
		Clusters: clusters,
		byName:   make(map[string]*registryv1alpha1.Cluster, len(clusters)),
		entries:  make(map[string]*Entry, len(entries)),
	}
	for _, cluster := range clusters {
		v.byName[cluster.Name] = cluster
	}
	var compiled []*policy.Policy
	for _, e := range entries {
		v.entries[e.Name] = e
		if e.Policy != nil {
			compiled = append(compiled, e.Policy)
		}
	}
	v.Policies = policy.NewSet(compiled)
	return v
}

// Cluster returns the registered cell of this name.
func (v *View) Cluster(name string) (*registryv1alpha1.Cluster, bool) {
	cluster, ok := v.byName[name]
	return cluster, ok
}

// Permission returns what a policy of Policies permits.
func (v *View) Permission(p *policy.Policy) *placement.Permission {
	return v.entries[p.Name].Permission
}

// Reaches reports whether a policy could permit the cell to the caller, for one
// workload or another.
func (v *View) Reaches(c policy.Caller, cell *registryv1alpha1.Cluster) bool {
	return slices.ContainsFunc(v.Policies.Reachable(c), func(p *policy.Policy) bool {
		return p.Selector.Matches(labels.Set(cell.Labels))
	})
}

// Permitting returns the names of those policies that permit the cell, in order.
// reachable are a caller's Policies.Reachable, found once for many cells.
func Permitting(reachable []*policy.Policy, cell *registryv1alpha1.Cluster) []string {
	var names []string
	for _, p := range reachable {
		if p.Selector.Matches(labels.Set(cell.Labels)) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Entry returns the policy of this name as it was read, compiled or not.
func (v *View) Entry(name string) (*Entry, bool) {
	e, ok := v.entries[name]
	return e, ok
}

// Matched is the number of cells that the selector of a policy of Policies
// matches.
func (v *View) Matched(p *policy.Policy) int {
	n := 0
	for _, cluster := range v.Clusters {
		if p.Selector.Matches(labels.Set(cluster.Labels)) {
			n++
		}
	}
	return n
}

// gone returns the cells that v has and now hasn't.
func (v *View) gone(now *View) []string {
	var names []string
	for _, cluster := range v.Clusters {
		if _, ok := now.byName[cluster.Name]; !ok {
			names = append(names, cluster.Name)
		}
	}
	return names
}
