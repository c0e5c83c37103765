// Package failure is the closed set of ways in which a call to a cell fails.
// Whoever calls a cell decides by the kind, never by the text: only a clean
// NotFound means that something isn't there, and only an Unauthenticated means
// that the cell doesn't know the hub.
package failure

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Kind is why a call to a cell failed.
type Kind string

// The kinds. There are no others.
const (
	// Unauthenticated: the cell doesn't believe the hub's token (401).
	Unauthenticated Kind = "Unauthenticated"
	// Forbidden: the cell knows the hub and forbids it this (403).
	Forbidden Kind = "Forbidden"
	// NotFound: the cell's API server says that the object isn't there (404).
	// The 404 of something that isn't a Kubernetes API is Unexpected.
	NotFound Kind = "NotFound"
	// Rejected: the cell's validation or admission refused what was asked (400,
	// 409, 413 and 422).
	Rejected Kind = "Rejected"
	// Unavailable: the cell, or what stands before it, answered that it can't
	// serve now (429 and 5xx).
	Unavailable Kind = "Unavailable"
	// Unreachable: no answer came. The connection failed, the cell's certificate
	// wasn't trusted, the call timed out, or the hub has stopped asking for a
	// while because of that.
	Unreachable Kind = "Unreachable"
	// NoHubToken: the hub could not get its own token for the cell. The cell
	// wasn't asked.
	NoHubToken Kind = "NoHubToken"
	// Interrupted: whoever wanted the answer went away, or its own deadline
	// passed, before the cell answered. It says nothing about the cell.
	Interrupted Kind = "Interrupted"
	// Unexpected: the cell answered something that isn't understood.
	Unexpected Kind = "Unexpected"
)

// MayClear reports whether the same call can succeed later without anyone
// changing the cell or the hub.
func (k Kind) MayClear() bool {
	switch k {
	case Unavailable, Unreachable, NoHubToken, Interrupted:
		return true
	case Unauthenticated, Forbidden, NotFound, Rejected, Unexpected:
		return false
	default:
		return false
	}
}

// Error is a failed call to a cell. It's a fault: its text is for the log and
// for the cell's operator, and may name addresses.
type Error struct {
	// Kind is why.
	Kind Kind
	// Cell is the cell's name.
	Cell string
	// RetryAfter is how long not to ask this cell again; zero where nothing is
	// known.
	RetryAfter time.Duration
	// Err is the cause.
	Err error
}

// Error is the cell, the kind and the cause.
func (e *Error) Error() string { return fmt.Sprintf("cell %s: %s: %v", e.Cell, e.Kind, e.Err) }

// Unwrap returns the cause. Don't ask it for an API status: where the hub could
// not get its own token the status is the hub's, not the cell's. Ask Of.
func (e *Error) Unwrap() error { return e.Err }

// Of returns why a call to a cell failed; Unexpected for an error that didn't
// come from one.
func Of(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Unexpected
}

// RetryAfter returns how long not to ask the cell again, or zero.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// FromStatus returns the kind of an answer of the cell's API server. The bool
// is false for an error that isn't an answer.
func FromStatus(err error) (kind Kind, answered bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Unexpected, false
	}
	switch code := int(status.Status().Code); {
	case code == http.StatusUnauthorized:
		return Unauthenticated, true
	case code == http.StatusForbidden:
		return Forbidden, true
	case code == http.StatusNotFound && !apierrors.IsUnexpectedServerError(err):
		return NotFound, true
	case code == http.StatusBadRequest, code == http.StatusConflict,
		code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity:
		return Rejected, true
	case code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
		return Unavailable, true
	default:
		return Unexpected, true
	}
}
