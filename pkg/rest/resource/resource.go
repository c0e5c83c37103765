// Package resource is what an API server asks of a storage besides its verbs.
// A storage embeds the type of its resource.
package resource

// clusterScoped belongs to the hub and to no namespace of it.
type clusterScoped struct{}

// NamespaceScoped is false.
func (clusterScoped) NamespaceScoped() bool { return false }

// Destroy releases nothing: a question is stored nowhere.
func (clusterScoped) Destroy() {}

// Placement is the resource placements.
type Placement struct{ clusterScoped }

// GetSingularName returns "placement".
func (Placement) GetSingularName() string { return "placement" }

// Cell is the resource cells, and each of its subresources.
type Cell struct{ clusterScoped }

// GetSingularName returns "cell".
func (Cell) GetSingularName() string { return "cell" }
