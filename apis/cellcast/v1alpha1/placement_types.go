package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Placement asks where a workload goes and for a short-lived credential to
// deploy it there. It can only be created; the answer is in its status and is
// kept nowhere. With ?dryRun=All it decides, and mints nothing.
//
// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Placement struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is filled in when
	// empty; nothing is stored under it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the question.
	Spec PlacementSpec `json:"spec"`

	// status is the answer.
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// PlacementSpec is the question: what is to be placed.
type PlacementSpec struct {
	// workload is the name of what is deployed, such as payments/api: at most
	// 253 lower-case letters, digits, '-', '.', '_' and '/', starting with a
	// letter or digit. Policies may restrict it, Sticky hashes it.
	Workload string `json:"workload"`

	// ttl is how long the credential shall live, as a duration such as 15m. It
	// may shorten what the policy gives and never lengthen it; under ten
	// minutes is raised to ten, the least that Kubernetes issues. Empty means
	// the default of policy and cell.
	// +optional
	TTL string `json:"ttl,omitempty"`

	// dark asks for a cell in state DARK, and for no other. The policy must
	// permit it.
	// +optional
	Dark bool `json:"dark,omitempty"`

	// resources are the requests of the whole workload, all its pods together
	// (cpu, memory, pods, or an extended resource such as nvidia.com/gpu).
	// Where set, only a cell with room for them is chosen.
	// +optional
	Resources ResourceList `json:"resources,omitempty"`

	// explain asks for status.candidates: why each cell was or wasn't chosen.
	// +optional
	Explain bool `json:"explain,omitempty"`

	// recipient is the public key to seal the credential's token to. With it the
	// token is in status.credential.sealedToken, which only the holder of the
	// private key can open; without it, whoever records the answer on its way
	// has the token too, and a Warning says so.
	// +optional
	Recipient *Recipient `json:"recipient,omitempty"`

	// revocationNonce is by what this caller can revoke the credential later
	// (cells/revocation), where the policy makes it revocable: 22 to 64
	// characters of A-Z, a-z, 0-9, '-' and '_', random, and never used before.
	// Left out, the hub draws one; the answer holds it either way.
	// +optional
	RevocationNonce string `json:"revocationNonce,omitempty"`
}

// Recipient is a public key as a JWK (RFC 7517, RFC 7518 section 6.2) on the
// curve P-256. A private key is refused.
type Recipient struct {
	// kty is EC.
	KeyType string `json:"kty"`

	// crv is P-256.
	Curve string `json:"crv"`

	// x is the x coordinate: 32 bytes in base64url without padding.
	X string `json:"x"`

	// y is the y coordinate: 32 bytes in base64url without padding.
	Y string `json:"y"`
}

// PlacementStatus is the answer.
type PlacementStatus struct {
	// requestID joins this answer, the hub's audit records and the audit log of
	// the API server.
	// +optional
	RequestID string `json:"requestID,omitempty"`

	// cell is the cell that was chosen.
	// +optional
	Cell CellReference `json:"cell,omitempty"`

	// policy is the name of the PlacementPolicy that governs.
	// +optional
	Policy string `json:"policy,omitempty"`

	// strategy is how the cell was chosen: LeastLoaded, RoundRobin or Sticky.
	// +optional
	Strategy string `json:"strategy,omitempty"`

	// source says where the decision comes from: hub, or, of a client that
	// answers in the hub's place, cache or pinned.
	// +optional
	Source DecisionSource `json:"source,omitempty"`

	// confidence says how much was known: high when each permitted, accepting
	// cell had reported, degraded when at least one had not; stale of a cached
	// decision, none of a pinned cell.
	// +optional
	Confidence Confidence `json:"confidence,omitempty"`

	// credential is the credential for the cell. It is absent in a dry run.
	// +optional
	Credential *Credential `json:"credential,omitempty"`

	// candidates are the cells that the caller may reach, each once, with the
	// verdict on it. Present when spec.explain is set. A caller that may list
	// clusters.registry.cellcast.io sees every registered cell.
	// +optional
	// +listType=atomic
	Candidates []Candidate `json:"candidates,omitempty"`

	// hiddenCells is the number of registered cells that aren't among the
	// candidates because the caller may not reach them.
	// +optional
	HiddenCells int32 `json:"hiddenCells,omitempty"`
}

// DecisionSource is where a decision comes from.
type DecisionSource string

// The sources. The hub's own decisions are from the hub; the others are what a
// client answers with when the hub can't, where its user declared that.
const (
	// SourceHub marks a decision that the hub made for this request.
	SourceHub DecisionSource = "hub"
	// SourceCache marks the hub's last decision for the workload, replayed.
	SourceCache DecisionSource = "cache"
	// SourcePinned marks a cell that the user named for this case.
	SourcePinned DecisionSource = "pinned"
)

// Confidence says how much was known when a decision was made.
type Confidence string

// The confidences: high and degraded of the hub's own decisions, stale and
// none of a client's that stands in for it.
const (
	// ConfidenceHigh: each permitted, accepting cell had a fresh report.
	ConfidenceHigh Confidence = "high"
	// ConfidenceDegraded: at least one of them was left out as unknown.
	ConfidenceDegraded Confidence = "degraded"
	// ConfidenceStale: it is an earlier decision.
	ConfidenceStale Confidence = "stale"
	// ConfidenceNone: nothing was known; a person had chosen the cell.
	ConfidenceNone Confidence = "none"
)

// CellReference is what a caller needs to reach a cell.
type CellReference struct {
	// name is the cell's name.
	Name string `json:"name"`

	// endpoint is the https URL of the cell's API server.
	Endpoint string `json:"endpoint"`

	// caBundle is the PEM certificates to check it by; empty means the
	// system's roots.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// Credential is a short-lived token of a ServiceAccount on a cell.
type Credential struct {
	// token is the bearer token. This response is the only place it is in. It is
	// empty where the request named a recipient.
	// +optional
	Token string `json:"token,omitempty"`

	// sealedToken is the token as a JWE in compact form (RFC 7516) that only the
	// request's recipient can open: ECDH-ES with A256GCM. It protects from
	// whoever records the answer, not from one who replaced the recipient on the
	// request's way to the hub.
	// +optional
	SealedToken string `json:"sealedToken,omitempty"`

	// expirationTimestamp is when the token ends, as the cell issued it: the
	// hard bound, which needs nobody to act.
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp"`

	// revokesAt is when the cell's agent ends a revocable credential, which may
	// be before expirationTimestamp. Empty where the policy doesn't make it
	// revocable.
	// +optional
	RevokesAt *metav1.Time `json:"revokesAt,omitempty"`

	// revocationNonce is by what the same caller can end a revocable credential
	// at once (cells/revocation). It is worth nothing to any other caller; keep it
	// out of logs all the same, for pipelines can share a subject.
	// +optional
	RevocationNonce string `json:"revocationNonce,omitempty"`

	// namespace is the namespace of the ServiceAccount, and the default one of
	// a kubeconfig made from this.
	Namespace string `json:"namespace"`

	// serviceAccountName is the ServiceAccount on the cell.
	ServiceAccountName string `json:"serviceAccountName"`

	// audiences are what the token is good for; empty means the cell's API
	// server.
	// +optional
	// +listType=atomic
	Audiences []string `json:"audiences,omitempty"`
}

// Candidate is the verdict on one cell.
type Candidate struct {
	// cell is the cell's name.
	Cell string `json:"cell"`

	// verdict is Chosen, Eligible or Excluded.
	Verdict Verdict `json:"verdict"`

	// stage is the filter stage that excluded the cell: permission, state or
	// capacity. Empty unless excluded.
	// +optional
	Stage Stage `json:"stage,omitempty"`

	// reason says in one word why: OutsidePolicy, Draining, Dark, NotDark,
	// UnknownState, NeverReported, Stale, NoCapacity or DoesNotFit. Of a cell that
	// isn't excluded it is empty, or Unreachable: chosen only where no other is
	// left, because the hub can't ask it for a credential now.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message says the same in a sentence.
	// +optional
	Message string `json:"message,omitempty"`

	// utilisationPercent is how full the worst dimension would be with this
	// request placed, in percent of allocatable, rounded to a tenth. Empty
	// where it is not known.
	// +optional
	UtilisationPercent string `json:"utilisationPercent,omitempty"`

	// worstResource is the dimension that utilisationPercent speaks of.
	// +optional
	WorstResource string `json:"worstResource,omitempty"`

	// reportAgeSeconds is the age of the report that the verdict rests on.
	// +optional
	ReportAgeSeconds *int64 `json:"reportAgeSeconds,omitempty"`
}

// Verdict is what became of a cell in a decision.
type Verdict string

// The verdicts.
const (
	VerdictChosen   Verdict = "Chosen"
	VerdictEligible Verdict = "Eligible"
	VerdictExcluded Verdict = "Excluded"
)

// Stage is a filter stage. They run in this order, and a cell is recorded at
// the first that excludes it.
type Stage string

// The filter stages.
const (
	StagePermission Stage = "permission"
	StageState      Stage = "state"
	StageCapacity   Stage = "capacity"
)
