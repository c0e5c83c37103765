package podidentity

import (
	"errors"
	"fmt"

	"cellcast.io/cellcast/pkg/keyset"
)

// Reason is why a pod's token was not accepted. The set is closed, so a metric
// may be labelled with it.
type Reason string

// The reasons. There are no others.
const (
	// ReasonMalformed: it's no compact JWT of at most 16 KiB whose claims can be
	// read.
	ReasonMalformed Reason = "Malformed"
	// ReasonAlgorithm: it's unsigned by its own account, or signed by a shared
	// secret or an algorithm that isn't accepted.
	ReasonAlgorithm Reason = "Algorithm"
	// ReasonIssuer: it's another issuer's.
	ReasonIssuer Reason = "Issuer"
	// ReasonAudience: it was issued for somebody else, or for others too.
	ReasonAudience Reason = "Audience"
	// ReasonExpired: it has ended, or says no end.
	ReasonExpired Reason = "Expired"
	// ReasonNotYetValid: it begins, or was issued, in the future.
	ReasonNotYetValid Reason = "NotYetValid"
	// ReasonLifetime: it lives longer than a day.
	ReasonLifetime Reason = "Lifetime"
	// ReasonNamespace: it's of another namespace.
	ReasonNamespace Reason = "Namespace"
	// ReasonServiceAccount: it's another ServiceAccount's.
	ReasonServiceAccount Reason = "ServiceAccount"
	// ReasonNoPod: it isn't bound to a pod.
	ReasonNoPod Reason = "NoPod"
	// ReasonSignature: the signature is missing or wrong.
	ReasonSignature Reason = "Signature"
	// ReasonUnknownKey: its key isn't among those that the target publishes.
	ReasonUnknownKey Reason = "UnknownKey"
	// ReasonKeysUnavailable: the target's keys can't be read.
	ReasonKeysUnavailable Reason = "KeysUnavailable"
	// ReasonRejected: the cell doesn't take it for a token of a pod of its own.
	ReasonRejected Reason = "Rejected"
	// ReasonCellUnavailable: the cell can't be asked.
	ReasonCellUnavailable Reason = "CellUnavailable"
	// ReasonRateLimited: the cell is being asked about too many tokens.
	ReasonRateLimited Reason = "RateLimited"
)

// Reasons are all of them.
func Reasons() []Reason {
	return []Reason{ReasonMalformed, ReasonAlgorithm, ReasonIssuer, ReasonAudience, ReasonExpired, ReasonNotYetValid,
		ReasonLifetime, ReasonNamespace, ReasonServiceAccount, ReasonNoPod, ReasonSignature, ReasonUnknownKey,
		ReasonKeysUnavailable, ReasonRejected, ReasonCellUnavailable, ReasonRateLimited}
}

// MayClear reports whether the token was not judged, and the same one can be
// accepted later: an answer of 503, or of 429 for ReasonRateLimited. All other
// reasons are rejections, 401.
func (r Reason) MayClear() bool {
	switch r {
	case ReasonKeysUnavailable, ReasonCellUnavailable, ReasonRateLimited:
		return true
	case ReasonMalformed, ReasonAlgorithm, ReasonIssuer, ReasonAudience, ReasonExpired, ReasonNotYetValid,
		ReasonLifetime, ReasonNamespace, ReasonServiceAccount, ReasonNoPod, ReasonSignature, ReasonUnknownKey,
		ReasonRejected:
		return false
	default:
		return false
	}
}

// Failure is a pod's token that was not accepted. It is for the hub's log and
// audit: whoever showed the token reads a status and nothing else. It may quote
// claims, cut at 256 bytes, and never the token. It isn't changed once made.
type Failure struct {
	Reason Reason
	// Target is where the pod was to be.
	Target Target

	cause error
}

// Error is the target, the reason and what it's about.
func (f *Failure) Error() string {
	return fmt.Sprintf("pod of %s: %s: %v", f.Target, f.Reason, f.cause)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.cause }

func (t Target) fail(reason Reason, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Target: t, cause: fmt.Errorf(format, args...)}
}

// keyFailure is what a key set has against a token.
func (t Target) keyFailure(err error) *Failure {
	reason := ReasonKeysUnavailable // not read, not read in time, or the caller has gone
	switch {
	case errors.Is(err, keyset.ErrMalformed):
		reason = ReasonMalformed
	case errors.Is(err, keyset.ErrAlgorithm):
		reason = ReasonAlgorithm
	case errors.Is(err, keyset.ErrSignature):
		reason = ReasonSignature
	case errors.Is(err, keyset.ErrUnknownKey):
		reason = ReasonUnknownKey
	}
	return &Failure{Reason: reason, Target: t, cause: err}
}
