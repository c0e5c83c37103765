package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterTarget stands for a ClusterTarget of registry.cellcast.io, whose
// questions these are. It has no verbs of its own: the row is the other group's.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterTarget struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the row.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// TargetProbe asks for a probe of a brought target, created on
// clustertargets/probe. The answer comes at once and names the run; its progress
// is in the row's status. One run is under way at a time: who asks meanwhile
// gets the id of that one.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TargetProbe struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; a name, where set, is the
	// target's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is which run it is.
	// +optional
	Status TargetProbeStatus `json:"status,omitempty"`
}

// TargetProbeStatus is which run answers a question for a probe.
type TargetProbeStatus struct {
	// requestID joins this answer and the hub's audit records.
	// +optional
	RequestID string `json:"requestID,omitempty"`

	// run is the id that the row's status.run will have.
	// +optional
	Run string `json:"run,omitempty"`

	// joined says that the run was under way, or asked for, already.
	// +optional
	Joined bool `json:"joined,omitempty"`
}

// TargetToken asks for a short-lived token of the ServiceAccount that pods of a
// brought target run as, created on clustertargets/token by somebody whom the
// target's owner covers. It is minted on the target with the registered
// credential, returned, and kept nowhere.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type TargetToken struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; a name, where set, is the
	// target's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the question.
	// +optional
	Spec TargetTokenSpec `json:"spec,omitempty"`

	// status is the answer.
	// +optional
	Status TargetTokenStatus `json:"status,omitempty"`
}

// TargetTokenSpec is what a token of a brought target shall be like.
type TargetTokenSpec struct {
	// ttl is how long the credential shall live, as a duration such as 15m. The
	// target's label env sets the default and the most, as for a cell; under ten
	// minutes is raised to ten. Empty means the default.
	// +optional
	TTL string `json:"ttl,omitempty"`

	// recipient is the public key to seal the token to, as in a Placement.
	// +optional
	Recipient *Recipient `json:"recipient,omitempty"`
}

// TargetTokenStatus is the answer.
type TargetTokenStatus struct {
	// requestID joins this answer and the hub's audit records.
	// +optional
	RequestID string `json:"requestID,omitempty"`

	// target is where the credential is for.
	// +optional
	Target TargetReference `json:"target,omitempty"`

	// credential is the credential. It is absent in a dry run.
	// +optional
	Credential *Credential `json:"credential,omitempty"`
}

// TargetReference is what a caller needs to reach a brought target.
type TargetReference struct {
	// namespace and name are those of the row.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`

	// address is target:<uid>, as the target is called beside the names of cells.
	Address string `json:"address"`

	// endpoint is the https URL of the target's API server.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// caBundle is the PEM certificates to check it by.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// LaunchTarget is something that this caller may launch onto: a cell that a
// policy permits, or a brought target whose owner covers the caller. It's
// computed at each request. Field selectors playbook=NAME and repository=NAME
// leave out what is bound to others.
//
// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=list
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type LaunchTarget struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name: the cell's, or target:<uid>.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what the hub knows about it.
	// +optional
	Status LaunchTargetStatus `json:"status,omitempty"`
}

// LaunchTargetStatus is what a caller needs to choose where to launch.
type LaunchTargetStatus struct {
	// kind is Cluster or ClusterTarget.
	Kind LaunchTargetKind `json:"kind"`

	// target is the row of a brought target.
	// +optional
	Target *LaunchTargetRow `json:"target,omitempty"`

	// state is LIVE, DARK or DRAINING of a cell; of a brought target what its
	// status says.
	State string `json:"state"`

	// launchable says whether something could be launched there now.
	Launchable bool `json:"launchable"`

	// reason says in a sentence why not.
	// +optional
	Reason string `json:"reason,omitempty"`

	// policies are the caller's policies that permit a cell.
	// +optional
	// +listType=atomic
	Policies []string `json:"policies,omitempty"`

	// owner is user:NAME or group:NAME of a brought target.
	// +optional
	Owner string `json:"owner,omitempty"`

	// capabilities are what a brought target is good for.
	// +optional
	// +listType=atomic
	Capabilities []string `json:"capabilities,omitempty"`

	// playbooks and repositories are what a brought target is bound to; empty
	// means any.
	// +optional
	// +listType=atomic
	Playbooks []string `json:"playbooks,omitempty"`
	// +optional
	// +listType=atomic
	Repositories []string `json:"repositories,omitempty"`

	// secretRule says in words which secrets a launch there may use.
	SecretRule string `json:"secretRule"`
}

// LaunchTargetRow is a row of the registry.
type LaunchTargetRow struct {
	// namespace and name are those of the row.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// LaunchTargetKind is what one launches onto.
type LaunchTargetKind string

// The kinds.
const (
	LaunchTargetCluster       LaunchTargetKind = "Cluster"
	LaunchTargetClusterTarget LaunchTargetKind = "ClusterTarget"
)

// LaunchTargetList is a list of LaunchTargets.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type LaunchTargetList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the LaunchTargets.
	Items []LaunchTarget `json:"items"`
}
