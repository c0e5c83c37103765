package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// TargetState says whether a brought target can be used.
// +kubebuilder:validation:Enum=Probing;Ready;Failed;Unreachable;CredentialRejected;CredentialUnavailable
type TargetState string

// The states of a target.
const (
	// TargetProbing: a first probe, or the first of a changed spec, is under way.
	TargetProbing TargetState = "Probing"
	// TargetReady: the last probe passed.
	TargetReady TargetState = "Ready"
	// TargetFailed: an item of the last probe failed.
	TargetFailed TargetState = "Failed"
	// TargetUnreachable: its API can't be connected to. It is tried again.
	TargetUnreachable TargetState = "Unreachable"
	// TargetCredentialRejected: its API refuses the credential (401), also as it
	// was read anew.
	TargetCredentialRejected TargetState = "CredentialRejected" //nolint:gosec // a state, not a credential
	// TargetCredentialUnavailable: the Secret or Vault that holds the credential
	// can't be read. It is tried again.
	TargetCredentialUnavailable TargetState = "CredentialUnavailable" //nolint:gosec // a state, not a credential
)

// TargetStates are all of them.
func TargetStates() []TargetState {
	return []TargetState{TargetProbing, TargetReady, TargetFailed, TargetUnreachable, TargetCredentialRejected, TargetCredentialUnavailable}
}

// Usable reports whether tokens are minted and pods launched on a target in
// this state. An unknown state isn't.
func (s TargetState) Usable() bool {
	switch s {
	case TargetReady:
		return true
	case TargetProbing, TargetFailed, TargetUnreachable, TargetCredentialRejected, TargetCredentialUnavailable:
		return false
	default:
		return false
	}
}

// TargetCheckName is an item of the probe.
type TargetCheckName string

// The items.
const (
	// CheckCredential: the kubeconfig was read and is of the closed form.
	CheckCredential TargetCheckName = "Credential"
	// CheckReachable: the hub can connect to the API.
	CheckReachable TargetCheckName = "Reachable"
	// CheckAuthenticated: the API takes the credential.
	CheckAuthenticated TargetCheckName = "Authenticated"
	// CheckNamespace: the namespace exists.
	CheckNamespace TargetCheckName = "Namespace"
	// CheckPermissions: the credential may do all that the hub needs.
	CheckPermissions TargetCheckName = "Permissions"
	// CheckExcess: it may do nothing beyond that.
	CheckExcess TargetCheckName = "ExcessPermissions"
	// CheckPullSecrets: the pull secrets exist.
	CheckPullSecrets TargetCheckName = "PullSecrets"
	// CheckSigningKeys: the keys that pods' tokens are signed with can be read.
	CheckSigningKeys TargetCheckName = "SigningKeys"
	// CheckTokens: the credential may mint tokens of the ServiceAccount.
	CheckTokens TargetCheckName = "Tokens"
	// CheckLocalQueue: the LocalQueue exists.
	CheckLocalQueue TargetCheckName = "LocalQueue"
	// CheckSandbox: the Sandbox resource is served.
	CheckSandbox TargetCheckName = "SandboxResource"
	// CheckCanary: a pod started there, proved who it is and reached the hub.
	CheckCanary TargetCheckName = "Canary"
)

// TargetChecks are all items, in the order in which they run.
func TargetChecks() []TargetCheckName {
	return []TargetCheckName{CheckCredential, CheckReachable, CheckAuthenticated, CheckNamespace, CheckPermissions, CheckExcess,
		CheckPullSecrets, CheckSigningKeys, CheckTokens, CheckLocalQueue, CheckSandbox, CheckCanary}
}

// CheckResult is how an item of a probe ended.
// +kubebuilder:validation:Enum=Passed;Failed;Warning;Skipped
type CheckResult string

// The results.
const (
	// CheckPassed: it holds.
	CheckPassed CheckResult = "Passed"
	// CheckFailed: it doesn't, and the target can't be used.
	CheckFailed CheckResult = "Failed"
	// CheckWarning: the target can be used, and somebody should look.
	CheckWarning CheckResult = "Warning"
	// CheckSkipped: it wasn't asked for, can't be told with these rights, or comes
	// after one that failed.
	CheckSkipped CheckResult = "Skipped"
)

// TargetCapability is something that a target is good for.
// +kubebuilder:validation:Enum=AgentTurns;Tokens;Measure;KubernetesSandbox
type TargetCapability string

// The capabilities.
const (
	// CapabilityAgentTurns: agent turns, with sandboxes by nested Podman. Every
	// Ready target has it.
	CapabilityAgentTurns TargetCapability = "AgentTurns"
	// CapabilityTokens: clustertargets/token.
	CapabilityTokens TargetCapability = "Tokens"
	// CapabilityMeasure: measure jobs, through Kueue.
	CapabilityMeasure TargetCapability = "Measure"
	// CapabilityKubernetesSandbox: sandboxes by the operator of the Sandbox
	// resource.
	CapabilityKubernetesSandbox TargetCapability = "KubernetesSandbox"
)

// ProbeReason is why a probe runs.
type ProbeReason string

// The reasons.
const (
	ProbeCreated           ProbeReason = "Created"
	ProbeSpecChanged       ProbeReason = "SpecChanged"
	ProbeCredentialChanged ProbeReason = "CredentialChanged"
	ProbeRequested         ProbeReason = "Requested"
	// ProbeRecovered: the target, or its credential, is back.
	ProbeRecovered ProbeReason = "Recovered"
	// ProbeResumed: the hub ended in the middle of a run.
	ProbeResumed ProbeReason = "Resumed"
)

// SecretTypeKubeconfig is the type of a Secret that holds a target's
// kubeconfig, under SecretKeyKubeconfig and no other key.
const (
	SecretTypeKubeconfig = "cellcast.io/kubeconfig" //nolint:gosec // a type, not a credential
	SecretKeyKubeconfig  = "kubeconfig"
)

// TargetFinalizer keeps a row until the hub has let go of the target.
const TargetFinalizer = "registry.cellcast.io/target"

// VerbAssignOwner is the verb on clustertargets that lets a user name any owner,
// as a GitOps controller must. It counts only where a ClusterRoleBinding gives it:
// owners are of the whole hub.
const VerbAssignOwner = "assign-owner"

// Covers reports whether the user is the owner, or in the owning group. Nobody
// covers an owner that names no one.
func (o TargetOwner) Covers(user string, groups []string) bool {
	if o.User != "" {
		return o.User == user
	}
	return o.Group != "" && slices.Contains(groups, o.Group)
}

// String is user:NAME or group:NAME.
func (o TargetOwner) String() string {
	switch {
	case o.User != "":
		return "user:" + o.User
	case o.Group != "":
		return "group:" + o.Group
	default:
		return ""
	}
}

// TargetAddress is what a brought target is called where a cell has its bare
// name: target:<uid>.
func TargetAddress(uid types.UID) string { return "target:" + string(uid) }
