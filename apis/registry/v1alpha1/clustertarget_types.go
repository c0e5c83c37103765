package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterTarget is a brought target: a namespace that a team owns on a cluster
// that the fleet doesn't manage. It names the credential, which stays in the
// owner's own Secret or Vault, and what pods find there. A probe proves that the
// namespace meets the contract, item by item; see status.checks.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=ct,categories=cellcast
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner.*`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name="Identity",type=string,JSONPath=`.spec.podIdentity`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Failing",type=string,priority=1,JSONPath=`.status.failing`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="a target's name has at most 63 characters"
type ClusterTarget struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The label "env" sets how long a
	// credential for the target may live, as it does on a Cluster.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the owner declares.
	// +required
	Spec ClusterTargetSpec `json:"spec"`

	// status is what the hub observed.
	// +optional
	Status ClusterTargetStatus `json:"status,omitempty"`
}

// ClusterTargetSpec is what the owner of a target declares. Its rules answer
// Forbidden, not Invalid, for the API server repeats an invalid value, and what
// somebody pasted into the wrong field may be a secret.
//
// +kubebuilder:validation:XValidation:rule="self.artifacts.backend != 'PersistentVolumeClaim' || has(self.artifacts.claimName)",message="artifacts.claimName is required where artifacts.backend is PersistentVolumeClaim",reason=FieldValueForbidden
type ClusterTargetSpec struct {
	// owner is who may use the target. Left out, it's the user who creates the
	// row. It must cover the creator: be that user, or a group that the user is
	// in. To hand a target over, old and new owner must both cover you. Whoever
	// has the verb assign-owner on clustertargets by a ClusterRoleBinding may name
	// anybody. Where the credential is in a Secret, you must be allowed to get it.
	// +optional
	// +kubebuilder:default={}
	Owner TargetOwner `json:"owner,omitempty"`

	// credentialRef says where the kubeconfig is. The row itself has no field
	// that could hold a credential.
	// +required
	CredentialRef TargetCredentialRef `json:"credentialRef"`

	// namespace is the namespace on the target's cluster, in which the hub acts
	// and outside of which it does nothing.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace",reason=FieldValueForbidden
	Namespace string `json:"namespace"`

	// serviceAccountName is the ServiceAccount in that namespace that pods run
	// as, and that clustertargets/token gives a token of.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be the name of a ServiceAccount",reason=FieldValueForbidden
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// imagePullSecrets are the names of Secrets in that namespace that pods pull
	// their images with.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be the name of a Secret",reason=FieldValueForbidden
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`

	// artifacts says where pods leave what they make.
	// +optional
	// +kubebuilder:default={}
	Artifacts TargetArtifacts `json:"artifacts,omitempty"`

	// ingestURL is the https URL at which pods of the target reach the hub's
	// external listener, where it isn't the hub's own --external-url.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#')",message="must be an https URL with a host, without userinfo, query or fragment",reason=FieldValueForbidden
	IngestURL string `json:"ingestURL,omitempty"`

	// queue is the Kueue LocalQueue in that namespace that measure jobs go
	// through.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a LocalQueue",reason=FieldValueForbidden
	Queue string `json:"queue,omitempty"`

	// measureSubstrate names what measure jobs run on, such as gpu-h100. It is
	// passed on as it is.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits, - and .",reason=FieldValueForbidden
	MeasureSubstrate string `json:"measureSubstrate,omitempty"`

	// sandboxDriver says how a pod makes its sandboxes: Podman, nested in the pod
	// itself, or Kubernetes, by the operator of the Sandbox resource
	// (agents.x-k8s.io).
	// +optional
	// +kubebuilder:default=Podman
	SandboxDriver SandboxDriver `json:"sandboxDriver,omitempty"`

	// podIdentity says how the hub proves which pod shows a token. JWKS, the only
	// one for a brought target, checks it offline by the keys that the target's
	// own API publishes.
	// +optional
	// +kubebuilder:default=JWKS
	PodIdentity PodIdentity `json:"podIdentity,omitempty"`

	// images are used in place of the hub's own defaults.
	// +optional
	Images TargetImages `json:"images,omitempty"`

	// bindings narrow what may be launched here. Left out, whatever the owner
	// launches.
	// +optional
	Bindings TargetBindings `json:"bindings,omitempty"`
}

// TargetOwner is who may use a target: one user, or one group of the hub.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.user) && has(self.group))",message="name a user or a group, not both",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.group) || !self.group.startsWith('system:') && !self.group.startsWith('cellcast.io:')",message="a system: group has members that nobody chose, and so has a cellcast.io: one; name a group of your identity provider, or a user",reason=FieldValueForbidden
type TargetOwner struct {
	// user is the name of a user of the hub.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	User string `json:"user,omitempty"`

	// group is the name of a group of the hub's users.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Group string `json:"group,omitempty"`
}

// TargetCredentialRef says where the kubeconfig of a target is: in one of the
// two.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.vaultRef)",message="name a secretRef or a vaultRef, and one of them only",reason=FieldValueForbidden
type TargetCredentialRef struct {
	// secretRef is a Secret of type cellcast.io/kubeconfig beside the row.
	// Whoever names it must be allowed to get it, and the hub needs a Role for
	// that one name.
	// +optional
	SecretRef *TargetSecretRef `json:"secretRef,omitempty"`

	// vaultRef is a secret of HashiCorp Vault or OpenBao, in a KV version 2
	// engine, under the owner's own path.
	// +optional
	VaultRef *TargetVaultRef `json:"vaultRef,omitempty"`
}

// TargetSecretRef is a Secret in the row's own namespace.
type TargetSecretRef struct {
	// name is the Secret's. Its key "kubeconfig" holds the kubeconfig.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be the name of a Secret",reason=FieldValueForbidden
	Name string `json:"name"`
}

// TargetVaultRef is a secret of a KV version 2 engine.
type TargetVaultRef struct {
	// path is the secret's, under the owner's prefix, in the engine that the hub
	// is set up with: users/NAME/... or groups/NAME/..., with NAME escaped as in
	// a URL's path.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._~%@:+=$&-]+(/[A-Za-z0-9._~%@:+=$&-]+)+$') && !self.matches('(^|/)[.]{1,2}(/|$)')",message="must be a path such as users/NAME/SECRET, without empty, . or .. segments",reason=FieldValueForbidden
	Path string `json:"path"`

	// key is the member of the secret that holds the kubeconfig.
	// +optional
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="must be letters, digits and ._-",reason=FieldValueForbidden
	Key string `json:"key,omitempty"`
}

// TargetArtifacts says where pods leave what they make.
type TargetArtifacts struct {
	// backend is Ingest (pods hand it to the hub) or PersistentVolumeClaim (they
	// keep it in the target's own namespace).
	// +optional
	// +kubebuilder:default=Ingest
	Backend ArtifactsBackend `json:"backend,omitempty"`

	// claimName is the PersistentVolumeClaim.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be the name of a PersistentVolumeClaim",reason=FieldValueForbidden
	ClaimName string `json:"claimName,omitempty"`
}

// ArtifactsBackend is where artifacts go.
// +kubebuilder:validation:Enum=Ingest;PersistentVolumeClaim
type ArtifactsBackend string

// The backends.
const (
	ArtifactsIngest                ArtifactsBackend = "Ingest"
	ArtifactsPersistentVolumeClaim ArtifactsBackend = "PersistentVolumeClaim"
)

// SandboxDriver is how a pod makes its sandboxes.
// +kubebuilder:validation:Enum=Podman;Kubernetes
type SandboxDriver string

// The drivers.
const (
	SandboxPodman     SandboxDriver = "Podman"
	SandboxKubernetes SandboxDriver = "Kubernetes"
)

// PodIdentity is how pods prove who they are. TokenReview is the fleet's: the
// owner of a namespace can't grant it.
// +kubebuilder:validation:Enum=JWKS
type PodIdentity string

// PodIdentityJWKS checks tokens by the target's published keys.
const PodIdentityJWKS PodIdentity = "JWKS"

// TargetImages are images by their part, each with a digest.
type TargetImages struct {
	// loop is the image that runs a turn.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][-a-z0-9._:/]*@sha256:[0-9a-f]{64}$')",message="must be an image with its digest, NAME@sha256:...",reason=FieldValueForbidden
	Loop string `json:"loop,omitempty"`

	// supervisor is the image that stands beside it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][-a-z0-9._:/]*@sha256:[0-9a-f]{64}$')",message="must be an image with its digest, NAME@sha256:...",reason=FieldValueForbidden
	Supervisor string `json:"supervisor,omitempty"`
}

// TargetBindings narrow what may be launched on a target.
type TargetBindings struct {
	// playbooks are the names of Playbooks; empty means any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Playbooks []string `json:"playbooks,omitempty"`

	// repositories are repositories such as acme/payments; empty means any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Repositories []string `json:"repositories,omitempty"`
}

// ClusterTargetStatus is what the hub observed about a target.
type ClusterTargetStatus struct {
	// observedGeneration is the generation of the spec that state and checks
	// speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state is Probing until a probe has passed or failed; then Ready, Failed,
	// Unreachable, CredentialRejected or CredentialUnavailable.
	// +optional
	State TargetState `json:"state,omitempty"`

	// failing is the first item of the probe that failed, in one line.
	// +optional
	Failing string `json:"failing,omitempty"`

	// checks are the items of the present probe, or the last one, in their order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Checks []TargetCheck `json:"checks,omitempty"`

	// capabilities are what the last probe that passed says the target is good
	// for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Capabilities []TargetCapability `json:"capabilities,omitempty"`

	// identity is how the pods of the target are proven.
	// +optional
	Identity *TargetIdentity `json:"identity,omitempty"`

	// request is the last probe that was asked for by clustertargets/probe.
	// +optional
	Request *ProbeRequest `json:"request,omitempty"`

	// run is the present probe, or the last one.
	// +optional
	Run *ProbeRun `json:"run,omitempty"`

	// credentialVersion is the version of the Secret, or of the secret in Vault,
	// that was last probed with: its resourceVersion, and nothing of its content.
	// +optional
	CredentialVersion string `json:"credentialVersion,omitempty"`

	// conditions are Ready, Reachable, CredentialAvailable and NameConflict.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TargetCheck is one item of a probe.
type TargetCheck struct {
	// name is the item's.
	Name TargetCheckName `json:"name"`

	// result is Passed, Failed, Warning or Skipped.
	Result CheckResult `json:"result"`

	// message says what was found and, unless it passed, what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// remedy is a command that mends it: on the target where it names a kubeconfig,
	// which is then the reader's own, else at the hub.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Remedy string `json:"remedy,omitempty"`

	// items are the parts of the item, such as each verb of Permissions.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Items []TargetCheckItem `json:"items,omitempty"`
}

// TargetCheckItem is a part of an item of a probe.
type TargetCheckItem struct {
	// name is the part's, such as "create pods".
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`

	// result is Passed, Failed, Warning or Skipped.
	Result CheckResult `json:"result"`
}

// TargetIdentity is how the pods of a target are proven.
type TargetIdentity struct {
	// issuer is the issuer of the target's ServiceAccount tokens, by its own
	// discovery document. Targets may share one: their keys separate them.
	// +kubebuilder:validation:MaxLength=512
	Issuer string `json:"issuer"`

	// audience is what a pod's token must be issued for.
	// +kubebuilder:validation:MaxLength=512
	Audience string `json:"audience"`
}

// ProbeRequest is a probe that somebody asked for.
type ProbeRequest struct {
	// id is the id of the run.
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// requestedAt is when.
	RequestedAt metav1.Time `json:"requestedAt"`
}

// ProbeRun is one run of the probe.
type ProbeRun struct {
	// id is the run's; of one that was asked for, the request's.
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// reason is why it runs: Created, SpecChanged, CredentialChanged, Requested,
	// Recovered or Resumed.
	// +kubebuilder:validation:MaxLength=64
	Reason ProbeReason `json:"reason"`

	// generation is the generation of the spec that is probed.
	Generation int64 `json:"generation"`

	// startedAt is when it began.
	StartedAt metav1.Time `json:"startedAt"`

	// finishedAt is when it ended; absent while it runs.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// canary is the pod that proves the way back to the hub.
	// +optional
	Canary *ProbeCanary `json:"canary,omitempty"`
}

// ProbeCanary is the pod that a probe starts on the target, and deletes.
type ProbeCanary struct {
	// podName is the pod's, known before it's created.
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName"`

	// podUID is the pod's, once it was created. No other pod's token is taken.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`

	// receivedAt is when a replica of the hub took its post.
	// +optional
	ReceivedAt *metav1.Time `json:"receivedAt,omitempty"`

	// deletedAt is when the hub had it deleted.
	// +optional
	DeletedAt *metav1.Time `json:"deletedAt,omitempty"`
}

// ClusterTargetList is a list of ClusterTargets.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ClusterTargetList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ClusterTargets.
	Items []ClusterTarget `json:"items"`
}
