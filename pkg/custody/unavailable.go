package custody

import (
	"errors"
	"fmt"

	"cellcast.io/cellcast/pkg/kubeconfig"
)

// Reason is why a source can't be read. The set is closed.
type Reason string

// The reasons. There are no others.
const (
	// ReasonNoSource: the row names no source, or two.
	ReasonNoSource Reason = "NoSource"
	// ReasonAbsent: there is no such Secret, or no such secret in Vault.
	ReasonAbsent Reason = "Absent"
	// ReasonForbidden: the hub may not read it.
	ReasonForbidden Reason = "Forbidden"
	// ReasonMalformed: it isn't of the form that a kubeconfig is kept in.
	ReasonMalformed Reason = "Malformed"
	// ReasonPath: the path isn't under the owner's prefix.
	ReasonPath Reason = "Path"
	// ReasonNoVault: the hub is set up with no Vault.
	ReasonNoVault Reason = "NoVault"
	// ReasonLogin: Vault doesn't let the hub in at all.
	ReasonLogin Reason = "Login"
	// ReasonUnreachable: the hub's API server, or Vault, gives no answer that serves.
	ReasonUnreachable Reason = "Unreachable"
)

// Reasons are all of them.
func Reasons() []Reason {
	return []Reason{ReasonNoSource, ReasonAbsent, ReasonForbidden, ReasonMalformed, ReasonPath, ReasonNoVault, ReasonLogin, ReasonUnreachable}
}

// MayClear reports whether the same source may be readable later with nothing
// changed by the target's owner. The others say that the credential isn't there
// for the hub any more.
func (r Reason) MayClear() bool {
	switch r {
	case ReasonLogin, ReasonUnreachable:
		return true
	case ReasonNoSource, ReasonAbsent, ReasonForbidden, ReasonMalformed, ReasonPath, ReasonNoVault:
		return false
	default:
		return false
	}
}

// Unavailable is a credential that can't be read where its owner keeps it. It's a
// fault: Error is for the log. Advice is for the target's owner.
type Unavailable struct {
	Reason Reason

	what, advice string
	cause        error
}

// Error is what couldn't be read, and why.
func (u *Unavailable) Error() string {
	if u.cause == nil {
		return fmt.Sprintf("reading the credential in %s: %s", u.what, u.Reason)
	}
	return fmt.Sprintf("reading the credential in %s: %s: %v", u.what, u.Reason, u.cause)
}

// Unwrap returns the cause.
func (u *Unavailable) Unwrap() error { return u.cause }

// Advice says to the target's owner what is wrong and what to do next. It has no
// value in it, and nothing of what the hub's API server or Vault said.
func (u *Unavailable) Advice() string { return u.advice }

// mayClear reports whether a failed read says nothing of what the owner wants.
func mayClear(failure error) bool {
	if u, ok := errors.AsType[*Unavailable](failure); ok {
		return u.Reason.MayClear()
	}
	_, refused := errors.AsType[*kubeconfig.Error](failure)
	return !refused
}
