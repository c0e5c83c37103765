package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cell is a cell as this caller may see it: the registered row joined with the
// capacity that the hub knows, computed at each request. A caller sees the
// cells that its policies permit; one that may list
// clusters.registry.cellcast.io sees all.
//
// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list
// +genclient:method=CreateCapacity,verb=create,subresource=capacity,input=CellCapacity,result=CellCapacity
// +genclient:method=CreateToken,verb=create,subresource=token,input=CellToken,result=CellToken
// +genclient:method=CreateRevocation,verb=create,subresource=revocation,input=CellRevocation,result=CellRevocation
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Cell struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the labels of the Cluster.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what the hub knows about the cell.
	// +optional
	Status CellStatus `json:"status,omitempty"`
}

// CellStatus is what the hub knows about a cell.
type CellStatus struct {
	// state is LIVE, DARK or DRAINING.
	State string `json:"state"`

	// capacity is Fresh, Stale (the last report is older than the staleness
	// window) or Unknown (there was none). Only a Fresh cell is ever chosen.
	Capacity CapacityHealth `json:"capacity"`

	// utilisationPercent is how full the worst dimension is, in percent of
	// allocatable, with what the hub has placed since the report. Empty where
	// it is not known.
	// +optional
	UtilisationPercent string `json:"utilisationPercent,omitempty"`

	// worstResource is the dimension that utilisationPercent speaks of.
	// +optional
	WorstResource string `json:"worstResource,omitempty"`

	// reportedAt is when the hub received the last report.
	// +optional
	ReportedAt *metav1.Time `json:"reportedAt,omitempty"`

	// policies are the caller's policies that permit the cell.
	// +optional
	// +listType=atomic
	Policies []string `json:"policies,omitempty"`
}

// CapacityHealth says what a cell's last report is worth.
type CapacityHealth string

// The healths of a report.
const (
	CapacityFresh   CapacityHealth = "Fresh"
	CapacityStale   CapacityHealth = "Stale"
	CapacityUnknown CapacityHealth = "Unknown"
)

// CellList is a list of Cells.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type CellList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the Cells.
	Items []Cell `json:"items"`
}

// CellCapacity is a cell's report of how full it is, created on cells/capacity
// by the reporter that the Cluster names and by nobody else. A report that is
// refused leaves the previous one in place.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type CellCapacity struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; a name, where set, is the
	// cell's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the report.
	Spec CellCapacitySpec `json:"spec"`

	// status is the hub's receipt.
	// +optional
	Status CellCapacityStatus `json:"status,omitempty"`
}

// CellCapacitySpec is a report of capacity.
type CellCapacitySpec struct {
	// sequence increases with every report of the cell, also across restarts
	// of its agent; one that doesn't exceed the last is refused as a replay.
	// The agent uses nanoseconds since 1970.
	Sequence int64 `json:"sequence"`

	// observedAt is when the agent took these figures, by its own clock. A
	// report that is older than the staleness window, or more than 30 seconds
	// in the future, is refused.
	ObservedAt metav1.MicroTime `json:"observedAt"`

	// nodes is the number of nodes that take pods: ready and schedulable. With
	// none, allocatable is empty and the cell takes no placement.
	Nodes int32 `json:"nodes"`

	// allocatable is the sum over those nodes. With at least one node, cpu,
	// memory and pods must be in it, above zero. At most 64 resources.
	// +optional
	Allocatable ResourceList `json:"allocatable,omitempty"`

	// requested is the sum of the requests of the pods that are not terminal,
	// counted as the scheduler counts them. Only resources of allocatable.
	// +optional
	Requested ResourceList `json:"requested,omitempty"`

	// revocableNamespaces are the namespaces of the cell in which its agent ends
	// credentials when their time is over. A revocable credential is issued for
	// no other. At most 64.
	// +optional
	// +listType=set
	RevocableNamespaces []string `json:"revocableNamespaces,omitempty"`
}

// CellCapacityStatus is the hub's receipt of a report.
type CellCapacityStatus struct {
	// receivedAt is when the hub received the report. Its age counts from here.
	// +optional
	ReceivedAt metav1.MicroTime `json:"receivedAt,omitempty"`

	// staleAt is when the report stops counting unless another one follows.
	// +optional
	StaleAt metav1.MicroTime `json:"staleAt,omitempty"`
}

// CellToken asks for a credential for a named cell, created on cells/token. It
// is for a decision that was made before: permission and state are checked as
// for a placement, nothing is scored. The policy must allow cell selection.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type CellToken struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; a name, where set, is the
	// cell's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the question.
	Spec CellTokenSpec `json:"spec"`

	// status is the answer.
	// +optional
	Status CellTokenStatus `json:"status,omitempty"`
}

// CellTokenSpec is the question.
type CellTokenSpec struct {
	// workload is the name of what is deployed; see PlacementSpec.
	Workload string `json:"workload"`

	// ttl is how long the credential shall live; see PlacementSpec.
	// +optional
	TTL string `json:"ttl,omitempty"`

	// dark says that the cell is meant to be DARK; see PlacementSpec.
	// +optional
	Dark bool `json:"dark,omitempty"`

	// recipient is the public key to seal the token to; see PlacementSpec.
	// +optional
	Recipient *Recipient `json:"recipient,omitempty"`

	// revocationNonce is by what the caller can revoke the credential; see
	// PlacementSpec.
	// +optional
	RevocationNonce string `json:"revocationNonce,omitempty"`
}

// CellTokenStatus is the answer.
type CellTokenStatus struct {
	// requestID joins this answer and the hub's audit records.
	// +optional
	RequestID string `json:"requestID,omitempty"`

	// cell is the cell.
	// +optional
	Cell CellReference `json:"cell,omitempty"`

	// policy is the name of the PlacementPolicy that governs.
	// +optional
	Policy string `json:"policy,omitempty"`

	// credential is the credential for the cell. It is absent in a dry run.
	// +optional
	Credential *Credential `json:"credential,omitempty"`
}

// CellRevocation ends a revocable credential of a named cell at once, created
// on cells/revocation by the caller whom the credential was issued to. The cell
// refuses the token within 15 seconds, for that long it may remember having
// accepted it. To revoke twice is no error.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type CellRevocation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; a name, where set, is the
	// cell's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is which credential.
	Spec CellRevocationSpec `json:"spec"`

	// status is what became of it.
	// +optional
	Status CellRevocationStatus `json:"status,omitempty"`
}

// CellRevocationSpec is which credential to end.
type CellRevocationSpec struct {
	// namespace is the credential's.
	Namespace string `json:"namespace"`

	// revocationNonce is the credential's.
	RevocationNonce string `json:"revocationNonce"`
}

// CellRevocationStatus is what became of a revocation.
type CellRevocationStatus struct {
	// requestID joins this answer and the hub's audit records.
	// +optional
	RequestID string `json:"requestID,omitempty"`

	// result is Revoked, or NotFound where no such credential of the caller's is
	// alive: it was revoked before, its time is over, or there was none.
	// +optional
	Result RevocationResult `json:"result,omitempty"`
}

// RevocationResult is what became of a revocation.
type RevocationResult string

// The results.
const (
	RevocationRevoked  RevocationResult = "Revoked"
	RevocationNotFound RevocationResult = "NotFound"
)
