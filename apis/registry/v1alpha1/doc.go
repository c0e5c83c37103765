// Package v1alpha1 holds the rows that cellcast keeps in its hub: Cluster, a
// cell that placements may reach, and PlacementPolicy, who may reach which.
// They are CustomResourceDefinitions; none of them has a field that could
// carry a credential.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.cellcast.registry.v1alpha1
// +kubebuilder:object:generate=false
// +groupName=registry.cellcast.io
package v1alpha1
