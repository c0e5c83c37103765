package refusal

import (
	"net/http"
	"time"
)

// Code is the machine-readable reason of a refusal.
type Code string

// The codes. There are no others.
const (
	NoPolicy               Code = "NoPolicy"
	DarkNotPermitted       Code = "DarkNotPermitted"
	CellChoiceNotPermitted Code = "CellChoiceNotPermitted"
	NoPermittedCells       Code = "NoPermittedCells"
	InvalidRequest         Code = "InvalidRequest"
	NoEligibleCells        Code = "NoEligibleCells"
	CapacityUnknown        Code = "CapacityUnknown"
	PlacementUnavailable   Code = "PlacementUnavailable"
	MintUnavailable        Code = "MintUnavailable"
	MintFailed             Code = "MintFailed"
	RateLimited            Code = "RateLimited"
	NotOwner               Code = "NotOwner"
	TargetNotReady         Code = "TargetNotReady"
)

// Stance is whether a client may answer in the hub's place, where its user
// declared that it shall (ADR-006). The zero value is no.
type Stance int

const (
	// StanceNever: the hub decided, or a fallback would hide the caller's own
	// mistake. A stance is no way around a policy, and a mint never falls back.
	StanceNever Stance = iota
	// StanceUnranked: the caller is permitted, and the hub found no cell that it
	// could choose. A stance may name one that was left out for its capacity
	// alone, and the refusal says which those are.
	StanceUnranked
	// StanceUndecided: nothing was decided, so nothing was refused.
	StanceUndecided
)

// String is the stance in the words of the documentation.
func (s Stance) String() string {
	switch s {
	case StanceUnranked:
		return "for a cell left out for capacity"
	case StanceUndecided:
		return "yes"
	default: // StanceNever
		return "no"
	}
}

// Meaning is what is fixed about a code.
type Meaning struct {
	Code Code
	// HTTP is the status that it travels with.
	HTTP int
	// MayClear says whether the same request can succeed later without anyone
	// changing a policy or the request.
	MayClear bool
	// RetryAfter is what the answer advises where nothing better is known;
	// zero exactly when MayClear is false.
	RetryAfter time.Duration
	// Stance says whether a client may answer in the hub's place.
	Stance Stance
	// Says is what the code means, in a sentence.
	Says string
	// Next is what the caller can do about it.
	Next string
}

// Meanings is the table of all codes, in the order of the documentation.
func Meanings() []Meaning {
	return []Meaning{
		{NoPolicy, http.StatusForbidden, false, 0, StanceNever,
			"No PlacementPolicy matches this caller and workload.",
			"Check the workload's name, or ask the platform team for a PlacementPolicy that matches the identity and the workload that the message names."},
		{DarkNotPermitted, http.StatusForbidden, false, 0, StanceNever,
			"The request asks for a dark cell and the governing policy doesn't permit it.",
			"Leave out --dark, or ask for allowDark in the policy that the message names."},
		{CellChoiceNotPermitted, http.StatusForbidden, false, 0, StanceNever,
			"The request names a cell and no policy lets this caller choose that cell.",
			"Create a placement and take the cell that it answers, or ask for allowCellSelection in the policy."},
		{NoPermittedCells, http.StatusConflict, false, 0, StanceNever,
			"The governing policy's clusterSelector matches no registered cell.",
			"Ask the platform team to compare the policy's clusterSelector with the labels in kubectl get clusters --show-labels."},
		{InvalidRequest, http.StatusBadRequest, false, 0, StanceNever,
			"A field of the request is wrong; nothing was decided.",
			"Correct the field that the message names."},
		{NoEligibleCells, http.StatusServiceUnavailable, true, 30 * time.Second, StanceUnranked,
			"Every permitted cell is draining, dark, or has no room for the request.",
			"Retry later; cellcast cells shows the state of each cell that you may reach."},
		{CapacityUnknown, http.StatusServiceUnavailable, true, 15 * time.Second, StanceUnranked,
			"No permitted and accepting cell has a fresh capacity report.",
			"Retry; if it lasts, the platform team should look at the cellcast-agent of those cells."},
		{PlacementUnavailable, http.StatusServiceUnavailable, true, 5 * time.Second, StanceUndecided,
			"This hub replica can't decide yet: it has just started.",
			"Retry; it clears by itself when the agents have reported."},
		{MintUnavailable, http.StatusServiceUnavailable, true, 10 * time.Second, StanceNever,
			"The cell that was chosen, or the brought target, can't be reached to issue the credential.",
			"Retry; if it lasts, the platform team should look at the Cluster's TrustEstablished condition."},
		{MintFailed, http.StatusServiceUnavailable, true, 30 * time.Second, StanceNever,
			"The cell that was chosen, or the brought target, refused to issue the credential, or issued one that the hub can't accept.",
			"Show the message to the platform team: it says whether trust, RBAC or the token's life is at fault."},
		{RateLimited, http.StatusTooManyRequests, true, time.Second, StanceUndecided,
			"Too many requests at once.",
			"Retry after the time that the answer names."},
		{NotOwner, http.StatusForbidden, false, 0, StanceNever,
			"The owner of the brought target doesn't cover this caller.",
			"Ask the owner that the message names, or have spec.owner of the ClusterTarget changed."},
		{TargetNotReady, http.StatusServiceUnavailable, true, 30 * time.Second, StanceNever,
			"The brought target isn't Ready, or its credential may mint no tokens, so none is issued for it.",
			"kubectl cellcast probe NAME says what is missing, and what mends it."},
	}
}

// Meaning returns what is fixed about the code. An unknown code, which only a
// newer hub could send, means a refusal that won't clear.
func (c Code) Meaning() Meaning {
	for _, m := range Meanings() {
		if m.Code == c {
			return m
		}
	}
	return Meaning{Code: c, HTTP: http.StatusForbidden,
		Says: "A refusal that this version doesn't know.", Next: "Update cellcast."}
}
