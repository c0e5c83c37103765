package caller

import (
	"errors"
	"fmt"

	"cellcast.io/cellcast/pkg/keyset"
)

// Reason is why a bearer token was refused. The set is closed, so a metric may
// be labelled with it.
type Reason string

// The reasons. There are no others.
const (
	// ReasonMalformed: it's no compact JWT of at most 16 KiB whose registered
	// claims can be read.
	ReasonMalformed Reason = "Malformed"
	// ReasonAlgorithm: it's unsigned by its own account, or signed by a shared
	// secret or an algorithm that isn't accepted.
	ReasonAlgorithm Reason = "Algorithm"
	// ReasonIssuer: no such issuer is configured, or it isn't the reporter's or
	// the hub's own.
	ReasonIssuer Reason = "Issuer"
	// ReasonSubject: it has no subject, or not the reporter's or the hub's own.
	ReasonSubject Reason = "Subject"
	// ReasonAudience: it was issued for somebody else.
	ReasonAudience Reason = "Audience"
	// ReasonExpired: it has ended, or says no end.
	ReasonExpired Reason = "Expired"
	// ReasonNotYetValid: it begins, or was issued, in the future.
	ReasonNotYetValid Reason = "NotYetValid"
	// ReasonLifetime: it lives longer than a day, or a replica's longer than an
	// hour.
	ReasonLifetime Reason = "Lifetime"
	// ReasonSignature: the signature is missing or wrong.
	ReasonSignature Reason = "Signature"
	// ReasonUnknownKey: its key isn't among those that the issuer publishes.
	ReasonUnknownKey Reason = "UnknownKey"
	// ReasonKeysUnavailable: the issuer's keys can't be read.
	ReasonKeysUnavailable Reason = "KeysUnavailable"
	// ReasonClaims: the claim mappings or rules of the issuer's configuration
	// refuse it.
	ReasonClaims Reason = "Claims"
	// ReasonReservedName: the claim mappings yield a name or group that is
	// reserved, or no name.
	ReasonReservedName Reason = "ReservedName"
	// ReasonUnknownCell: there is no such cell to report for.
	ReasonUnknownCell Reason = "UnknownCell"
	// ReasonNoReporter: the cell names no reporter.
	ReasonNoReporter Reason = "NoReporter"
	// ReasonVerb: a cell's capacity can only be created, and the relay only be
	// posted to.
	ReasonVerb Reason = "Verb"
)

// Reasons are all of them.
func Reasons() []Reason {
	return []Reason{ReasonMalformed, ReasonAlgorithm, ReasonIssuer, ReasonSubject, ReasonAudience, ReasonExpired,
		ReasonNotYetValid, ReasonLifetime, ReasonSignature, ReasonUnknownKey, ReasonKeysUnavailable, ReasonClaims,
		ReasonReservedName, ReasonUnknownCell, ReasonNoReporter, ReasonVerb}
}

// Failure is a bearer token that was refused. It is for the hub's log and
// audit: the client reads 401 and nothing else. It may quote claims, cut at
// 256 bytes, and never the token.
type Failure struct {
	Reason Reason
	// Issuer is the configured issuer, and Cell the cell, whose token it was
	// to be; each empty where that isn't known.
	Issuer string
	Cell   string

	cause error
}

// Error is the reason and what it's about.
func (f *Failure) Error() string {
	switch {
	case f.Cell != "":
		return fmt.Sprintf("%s: reporter of cell %.256q: %v", f.Reason, f.Cell, f.cause)
	case f.Issuer != "":
		return fmt.Sprintf("%s: issuer %q: %v", f.Reason, f.Issuer, f.cause)
	default:
		return fmt.Sprintf("%s: %v", f.Reason, f.cause)
	}
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.cause }

func fail(reason Reason, format string, args ...any) *Failure {
	return &Failure{Reason: reason, cause: fmt.Errorf(format, args...)}
}

// keyFailure is what a key set has against a token.
func keyFailure(err error) *Failure {
	switch {
	case errors.Is(err, keyset.ErrMalformed):
		return &Failure{Reason: ReasonMalformed, cause: err}
	case errors.Is(err, keyset.ErrAlgorithm):
		return &Failure{Reason: ReasonAlgorithm, cause: err}
	case errors.Is(err, keyset.ErrSignature):
		return &Failure{Reason: ReasonSignature, cause: err}
	case errors.Is(err, keyset.ErrUnknownKey):
		return &Failure{Reason: ReasonUnknownKey, cause: err}
	default: // not read, not read in time, or the caller has gone
		return &Failure{Reason: ReasonKeysUnavailable, cause: err}
	}
}
