// Package v1alpha1 holds the questions that cellcast answers: where a workload
// goes (Placement), which cells a caller may reach (Cell), how full a cell is
// (CellCapacity) and a credential for a named cell (CellToken). They are served
// by cellcast's own API server and stored nowhere.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.cellcast.v1alpha1
// +groupName=cellcast.io
package v1alpha1
