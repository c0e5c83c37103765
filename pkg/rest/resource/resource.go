// Package resource is what an API server asks of a storage besides its verbs.
// A storage embeds the type of its resource.
package resource

// clusterScoped belongs to the hub and to no namespace of it.
type clusterScoped struct{}

// NamespaceScoped is false.
func (clusterScoped) NamespaceScoped() bool { return false }

// Destroy releases nothing: a question is stored nowhere.
func (clusterScoped) Destroy() {}

// namespaceScoped belongs to a namespace of the hub.
type namespaceScoped struct{}

// NamespaceScoped is true.
func (namespaceScoped) NamespaceScoped() bool { return true }

// Destroy releases nothing: a question is stored nowhere.
func (namespaceScoped) Destroy() {}

// Placement is the resource placements.
type Placement struct{ clusterScoped }

// GetSingularName returns "placement".
func (Placement) GetSingularName() string { return "placement" }

// Cell is the resource cells, and each of its subresources.
type Cell struct{ clusterScoped }

// GetSingularName returns "cell".
func (Cell) GetSingularName() string { return "cell" }

// ClusterTarget is the resource clustertargets, and each of its subresources.
type ClusterTarget struct{ namespaceScoped }

// GetSingularName returns "clustertarget".
func (ClusterTarget) GetSingularName() string { return "clustertarget" }

// LaunchTarget is the resource launchtargets.
type LaunchTarget struct{ clusterScoped }

// GetSingularName returns "launchtarget".
func (LaunchTarget) GetSingularName() string { return "launchtarget" }
