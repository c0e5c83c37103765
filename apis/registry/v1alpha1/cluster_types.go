package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a cell: a Kubernetes cluster that placements may choose. It says
// where the cell is and how trust with it is arranged. It holds no credential:
// the hub asks for a short-lived token of its own whenever it talks to a cell.
//
// The labels of a Cluster are what policies select by. The label "env" also
// sets how long a credential for the cell may live.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=clu,categories=cellcast
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Accepting",type=string,JSONPath=`.status.conditions[?(@.type=="AcceptingPlacements")].status`
// +kubebuilder:printcolumn:name="Trust",type=string,JSONPath=`.status.conditions[?(@.type=="TrustEstablished")].status`
// +kubebuilder:printcolumn:name="Reporter",type=string,JSONPath=`.status.conditions[?(@.type=="ReporterTrusted")].status`
// +kubebuilder:printcolumn:name="Env",type=string,JSONPath=`.metadata.labels.env`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Provider",type=string,priority=1,JSONPath=`.spec.provider`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="a cell's name has at most 63 characters"
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is the cell's name.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the operator declares.
	// +required
	Spec ClusterSpec `json:"spec"`

	// status is what the hub observed.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec is what the operator declares about a cell. Its rules answer
// Forbidden, not Invalid, for the API server repeats an invalid value, and what
// somebody pasted into the wrong field may be a secret.
type ClusterSpec struct {
	// endpoint is the https URL of the cell's API server, as the hub and the
	// callers reach it. It has no userinfo, query or fragment.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != ''",message="must be an https URL with a host",reason=FieldValueForbidden
	// +kubebuilder:validation:XValidation:rule="!self.contains('@') && !self.contains('?') && !self.contains('#')",message="must have no userinfo, query or fragment",reason=FieldValueForbidden
	Endpoint string `json:"endpoint"`

	// caBundle is the PEM certificates that the API server's certificate is
	// checked against. Empty means the system's roots. Anything in it that is
	// not a certificate is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle []byte `json:"caBundle,omitempty"`

	// provider says whose Kubernetes this is; informational.
	// +optional
	// +kubebuilder:default=generic
	Provider ClusterProvider `json:"provider,omitempty"`

	// state says whether new placements may land here: LIVE takes them, DARK
	// takes only those that ask for a dark cell and may, DRAINING takes none.
	// +optional
	// +kubebuilder:default=LIVE
	State ClusterState `json:"state,omitempty"`

	// trust says how the cell recognises the hub.
	// +required
	Trust ClusterTrust `json:"trust"`

	// reporter names the only identity that may report this cell's capacity.
	// Unset means nobody: the cell stays Unknown and takes no placement.
	// +optional
	Reporter *ClusterReporter `json:"reporter,omitempty"`
}

// ClusterProvider is whose Kubernetes a cell is.
// +kubebuilder:validation:Enum=eks;gke;aks;generic
type ClusterProvider string

// The providers of a cell.
const (
	ProviderEKS     ClusterProvider = "eks"
	ProviderGKE     ClusterProvider = "gke"
	ProviderAKS     ClusterProvider = "aks"
	ProviderGeneric ClusterProvider = "generic"
)

// ClusterTrust says how the cell recognises the hub.
type ClusterTrust struct {
	// audience is what the hub's own tokens for this cell are issued for, and
	// what the cell's AuthenticationConfiguration demands. No two cells may
	// share one: a token shown to one cell must be worthless at another.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9._:/]*[A-Za-z0-9])?$')",message="must be letters, digits and -._:/, with a letter or digit at both ends",reason=FieldValueForbidden
	Audience string `json:"audience"`
}

// ClusterReporter is the identity that may report a cell's capacity. Issuer
// and subject are compared literally with those of the reporter's token, which
// must also be signed by the keys of this very cell.
type ClusterReporter struct {
	// issuer is the token's issuer, as the cell's API server names itself.
	// Cells may share one: the keys separate them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Issuer string `json:"issuer"`

	// subject is the token's subject, such as
	// system:serviceaccount:cellcast-system:cellcast-agent.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Subject string `json:"subject"`

	// keys says where the signing keys are read: Cell asks the cell's API
	// server (/openid/v1/jwks) as the hub; Discovery asks the issuer's public
	// discovery document.
	// +optional
	// +kubebuilder:default=Cell
	Keys ReporterKeys `json:"keys,omitempty"`
}

// ReporterKeys is where the keys that check a reporter's token come from.
// +kubebuilder:validation:Enum=Cell;Discovery
type ReporterKeys string

// The sources of a reporter's keys.
const (
	ReporterKeysCell      ReporterKeys = "Cell"
	ReporterKeysDiscovery ReporterKeys = "Discovery"
)

// ClusterStatus is what the hub observed about a cell.
type ClusterStatus struct {
	// observedGeneration is the generation of the spec that the conditions
	// speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// stateSince is when the hub first saw the present spec.state.
	// +optional
	StateSince *metav1.Time `json:"stateSince,omitempty"`

	// observedState is the spec.state that stateSince speaks of.
	// +optional
	ObservedState ClusterState `json:"observedState,omitempty"`

	// conditions are AcceptingPlacements (the state lets placements in),
	// TrustEstablished (the hub really authenticated at the cell) and
	// ReporterTrusted (the keys of the reporter could be read).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the Clusters.
	Items []Cluster `json:"items"`
}
