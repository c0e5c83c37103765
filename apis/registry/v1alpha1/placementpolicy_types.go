package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementPolicy says who may reach which cells, how one of them is chosen,
// and what the credential for it may do. A caller that no policy matches is
// refused. Of several that match, the most specific governs, alone.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ppol,categories=cellcast
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Cells",type=integer,JSONPath=`.status.matchedClusters`
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.spec.strategy`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.credential.namespace`
// +kubebuilder:printcolumn:name="ServiceAccount",type=string,JSONPath=`.spec.credential.serviceAccountName`
// +kubebuilder:printcolumn:name="Ambiguous",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ambiguous")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PlacementPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the operator declares.
	// +required
	Spec PlacementPolicySpec `json:"spec"`

	// status is what the hub observed.
	// +optional
	Status PlacementPolicyStatus `json:"status,omitempty"`
}

// PlacementPolicySpec is who may reach which cells, and with what credential.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tokenTTL) || !has(self.tokenTTL.default) || duration(self.tokenTTL.default) >= (has(self.credential.revocable) && self.credential.revocable ? duration('1m') : duration('10m'))",message="tokenTTL.default must be at least 10m, the least that Kubernetes issues a token for, or 1m with credential.revocable"
// +kubebuilder:validation:XValidation:rule="!has(self.tokenTTL) || !has(self.tokenTTL.max) || duration(self.tokenTTL.max) >= (has(self.credential.revocable) && self.credential.revocable ? duration('1m') : duration('10m'))",message="tokenTTL.max must be at least 10m, the least that Kubernetes issues a token for, or 1m with credential.revocable"
type PlacementPolicySpec struct {
	// subjects are the callers that this policy is for; matching one of them is
	// enough. The one with the most constraints counts for the specificity.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Subjects []PolicySubject `json:"subjects"`

	// workloads restricts the policy to workloads of these names. An entry that
	// ends in * matches by prefix. Empty means every workload.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9][-a-z0-9._/]*\*?$`
	Workloads []string `json:"workloads,omitempty"`

	// clusterSelector selects the permitted cells by the labels of their
	// Cluster. An empty selector permits every cell.
	// +required
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`

	// strategy is how one of the eligible cells is chosen.
	// +optional
	// +kubebuilder:default=LeastLoaded
	Strategy Strategy `json:"strategy,omitempty"`

	// allowDark permits placements that ask for a dark cell.
	// +optional
	AllowDark bool `json:"allowDark,omitempty"`

	// allowCellSelection permits the caller to name the cell (cells/token).
	// +optional
	AllowCellSelection bool `json:"allowCellSelection,omitempty"`

	// tokenTTL overrides how long a credential lives, up to the hub's ceiling.
	// Unset means what the cell's env label says.
	// +optional
	TokenTTL *TokenTTL `json:"tokenTTL,omitempty"`

	// credential is the scope of the credential that a placement returns.
	// +required
	Credential CredentialScope `json:"credential"`
}

// Strategy is how one of several eligible cells is chosen.
// +kubebuilder:validation:Enum=LeastLoaded;RoundRobin;Sticky
type Strategy string

// The strategies.
const (
	// StrategyLeastLoaded takes the cell with the lowest utilisation, counting
	// the request itself; ties are broken by a hash of workload and cell.
	StrategyLeastLoaded Strategy = "LeastLoaded"
	// StrategyRoundRobin takes the eligible cells in turn.
	StrategyRoundRobin Strategy = "RoundRobin"
	// StrategySticky keeps a workload on one cell by rendezvous hashing; only
	// the workloads of a cell that leaves move.
	StrategySticky Strategy = "Sticky"
)

// PolicySubject is a conjunction: each constraint that is set must match.
// issuer, subject and claims speak of the caller's CI token; users, groups and
// serviceAccounts of a caller that the hub's own API server authenticated.
//
// +kubebuilder:validation:XValidation:rule="has(self.issuer) || has(self.subject) || has(self.claims) || has(self.users) || has(self.groups) || has(self.serviceAccounts) || has(self.expression)",message="must have at least one constraint: a subject without any would match every caller"
// +kubebuilder:validation:XValidation:rule="!((has(self.subject) || has(self.claims)) && !has(self.issuer))",message="subject and claims need an issuer: claims of different issuers mean different things"
// +kubebuilder:validation:XValidation:rule="!(has(self.issuer) && (has(self.users) || has(self.groups) || has(self.serviceAccounts)))",message="issuer is for pipelines; users, groups and serviceAccounts are for callers of the hub's own: use two subjects"
type PolicySubject struct {
	// issuer is the exact issuer (iss) of the caller's token.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Issuer string `json:"issuer,omitempty"`

	// subject is the exact subject (sub) of the caller's token.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Subject string `json:"subject,omitempty"`

	// claims are exact values of the caller's claims, by the name that follows
	// claims.cellcast.io/ in the hub's AuthenticationConfiguration.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	Claims map[string]ClaimValue `json:"claims,omitempty"`

	// users are names of hub users, any of which matches.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Users []string `json:"users,omitempty"`

	// groups are names of groups of hub users, any of which matches.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Groups []string `json:"groups,omitempty"`

	// serviceAccounts are ServiceAccounts of the hub, any of which matches.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ServiceAccounts []ServiceAccountReference `json:"serviceAccounts,omitempty"`

	// expression is CEL over the caller for what equality can't say, such as
	// claims.ref.startsWith('refs/tags/v'). It must yield a bool. In it are
	// user (string), groups (list of string), claims (map of string to string,
	// the claims with one value) and claimLists (map of string to list of
	// string, every claim). An expression that fails does not match.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression,omitempty"`
}

// ClaimValue is the exact value of a claim.
// +kubebuilder:validation:MaxLength=1024
type ClaimValue string

// ServiceAccountReference names a ServiceAccount of the hub.
type ServiceAccountReference struct {
	// namespace is the ServiceAccount's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// name is the ServiceAccount's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// TokenTTL bounds how long a credential lives. Values are durations such as
// 15m; both are bounded by the hub's --token-max-ttl, and neither may be under
// ten minutes, the least that Kubernetes issues a token for; with
// credential.revocable, under one minute.
//
// +kubebuilder:validation:XValidation:rule="!has(self.default) || !has(self.max) || duration(self.default) <= duration(self.max)",message="default must not be longer than max"
type TokenTTL struct {
	// default is the life of a credential whose request names none.
	// +optional
	// +kubebuilder:validation:Format=duration
	Default *metav1.Duration `json:"default,omitempty"`

	// max is the longest life that a request may ask for.
	// +optional
	// +kubebuilder:validation:Format=duration
	Max *metav1.Duration `json:"max,omitempty"`
}

// CredentialScope is what a credential may do: it is a token of one
// ServiceAccount on the chosen cell, and the cell's own RBAC says the rest.
//
// +kubebuilder:validation:XValidation:rule="has(self.namespace) != has(self.namespaceExpression)",message="exactly one of namespace and namespaceExpression must be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.revocable) && self.revocable && has(self.audiences) && size(self.audiences) > 0)",message="a revocable credential is for the cell's API server alone: whoever else accepts a token doesn't notice that it was revoked; leave out audiences or revocable"
type CredentialScope struct {
	// namespace is the namespace of the ServiceAccount on the cell.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// namespaceExpression is CEL that yields that namespace, such as
	// 'repo-' + claims.repository_id. In it are the caller's variables (see
	// subjects.expression) and workload.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	NamespaceExpression string `json:"namespaceExpression,omitempty"`

	// serviceAccountName is the ServiceAccount on the cell.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName"`

	// audiences are what the token is good for. Empty means the cell's API
	// server, which is what kubectl needs.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Audiences []string `json:"audiences,omitempty"`

	// revocable binds each credential to an empty Secret beside the
	// ServiceAccount, which the cell's agent deletes when the placement's ttl is
	// over: then the token is dead, though Kubernetes issued it for ten minutes
	// at least. So the ttl may be as short as one minute, and the caller can end
	// the credential at once. The namespace must hold nothing but revocable
	// ServiceAccounts; cellcast register cell --revocable prints what it needs.
	// It goes without audiences: only the cell's API server notices the end.
	// +optional
	Revocable bool `json:"revocable,omitempty"`
}

// PlacementPolicyStatus is what the hub observed about a policy.
type PlacementPolicyStatus struct {
	// observedGeneration is the generation of the spec that the conditions
	// speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// matchedClusters is the number of cells that clusterSelector matches.
	// +optional
	MatchedClusters int32 `json:"matchedClusters"`

	// conditions are Ready, IssuerTrusted and Ambiguous.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PlacementPolicyList is a list of PlacementPolicies.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type PlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the PlacementPolicies.
	Items []PlacementPolicy `json:"items"`
}
