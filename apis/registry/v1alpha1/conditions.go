package v1alpha1

// Conditions of a Cluster.
const (
	// ConditionAcceptingPlacements is True while spec.state lets placements in.
	ConditionAcceptingPlacements = "AcceptingPlacements"
	// ConditionTrustEstablished is True when the hub last authenticated at the
	// cell as itself.
	ConditionTrustEstablished = "TrustEstablished"
	// ConditionReporterTrusted is True when the keys of the reporter were read.
	ConditionReporterTrusted = "ReporterTrusted"
)

// Conditions of a PlacementPolicy.
const (
	// ConditionReady is True when the policy compiles and reaches a cell.
	ConditionReady = "Ready"
	// ConditionIssuerTrusted is True when the hub trusts each issuer that the
	// policy names.
	ConditionIssuerTrusted = "IssuerTrusted"
	// ConditionAmbiguous is True when another policy with the same subjects and
	// workloads is exactly as specific, so that the name decides.
	ConditionAmbiguous = "Ambiguous"
)

// Conditions of a ClusterTarget, beside ConditionReady, which is True exactly
// when its state is Ready; the reason is the state.
const (
	// ConditionReachable is False when the target's API couldn't be connected to
	// several times in a row.
	ConditionReachable = "Reachable"
	// ConditionCredentialAvailable is True when the credential was read where the
	// row says that it is.
	ConditionCredentialAvailable = "CredentialAvailable" //nolint:gosec // a condition, not a credential
	// ConditionNameConflict is True when a Cluster has the target's name.
	ConditionNameConflict = "NameConflict"
)

// Reasons of the conditions.
const (
	// ReasonConnected: the target's API answers.
	ReasonConnected = "Connected"
	// ReasonCredentialRead: the credential was read.
	ReasonCredentialRead = "Read"
	// ReasonCredentialUnavailable: the Secret or Vault couldn't be read.
	ReasonCredentialUnavailable = "Unavailable" //nolint:gosec // a reason, not a credential
	// ReasonNameTaken: a Cluster has the name.
	ReasonNameTaken = "NameTaken"
	// ReasonNameFree: no Cluster has the name.
	ReasonNameFree = "NameFree"

	// ReasonLive: the cell takes placements.
	ReasonLive = "Live"
	// ReasonDark: the cell takes only dark placements.
	ReasonDark = "Dark"
	// ReasonDraining: the cell takes no placement.
	ReasonDraining = "Draining"

	// ReasonAuthenticated: the cell knew the hub by its own token.
	ReasonAuthenticated = "Authenticated"
	// ReasonUnauthenticated: the cell refused the hub's token (401).
	ReasonUnauthenticated = "Unauthenticated"
	// ReasonUnreachable: no connection to the cell could be made.
	ReasonUnreachable = "Unreachable"
	// ReasonSharedIssuer: the cell has the hub's own issuer, so it can't
	// federate with it.
	ReasonSharedIssuer = "SharedIssuer"
	// ReasonHubTokenUnavailable: the hub could not get its own token.
	ReasonHubTokenUnavailable = "HubTokenUnavailable" //nolint:gosec // a reason, not a token

	// ReasonNoReporter: the Cluster names no reporter.
	ReasonNoReporter = "NoReporter"
	// ReasonKeysRead: the reporter's keys were read.
	ReasonKeysRead = "KeysRead"
	// ReasonKeysForbidden: the cell forbids the hub to read its keys.
	ReasonKeysForbidden = "KeysForbidden"
	// ReasonKeysUnavailable: the reporter's keys could not be read.
	ReasonKeysUnavailable = "KeysUnavailable"

	// ReasonReachesCells: the policy's selector matches at least one cell.
	ReasonReachesCells = "ReachesCells"
	// ReasonMatchesNoCell: the policy's selector matches no cell.
	ReasonMatchesNoCell = "MatchesNoCell"
	// ReasonInvalid: the policy doesn't compile.
	ReasonInvalid = "Invalid"
	// ReasonIssuersTrusted: every issuer named is configured in the hub.
	ReasonIssuersTrusted = "IssuersTrusted"
	// ReasonIssuerUnknown: an issuer named isn't configured in the hub.
	ReasonIssuerUnknown = "IssuerUnknown"
	// ReasonNoIssuer: the policy names no issuer.
	ReasonNoIssuer = "NoIssuer"
	// ReasonUnique: no other policy ties with this one.
	ReasonUnique = "Unique"
	// ReasonTied: another policy ties with this one.
	ReasonTied = "Tied"
)
