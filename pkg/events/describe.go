package events

import (
	"fmt"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"cellcast.io/cellcast/pkg/audit"
)

// The reasons. There are no others.
const (
	reasonPlaced           = "Placed"
	reasonMinted           = "Minted"
	reasonMintFailed       = "MintFailed"
	reasonRevoked          = "Revoked"
	reasonRevocationFailed = "RevocationFailed"
)

// maxMessage is the most bytes of a message that an API server takes.
const maxMessage = 1024

// description is what an Event says.
type description struct {
	kind, reason, message string
}

// ends is when the credential of a mint ends, if everybody does what they should.
func ends(r audit.Record) time.Time {
	if !r.RevokesAt.IsZero() && r.RevokesAt.Before(r.ExpiresAt) {
		return r.RevokesAt
	}
	return r.ExpiresAt
}

// describe returns what there is to say about a cell; false where a record is no
// matter of a cell. A placement that was refused isn't: the caller may have named
// any cell, and must not be able to write on it. Callers' names are quoted, so
// that none can pass for something else.
func describe(r audit.Record) (description, bool) {
	good := r.Outcome == audit.OutcomeAllowed
	switch r.Event {
	case audit.EventPlacement:
		if !good || r.DryRun {
			return description{}, false
		}
		return normal(reasonPlaced, "workload %s, by policy %s, for %q", r.Workload, r.Policy, r.User), true
	case audit.EventMint:
		account := r.Namespace + "/" + r.ServiceAccount
		if good {
			return normal(reasonMinted, "a credential of %s until %s for workload %s, by policy %s, for %q",
				account, ends(r).UTC().Format(time.RFC3339), r.Workload, r.Policy, r.User), true
		}
		return warning(reasonMintFailed, "no credential of %s for workload %s, by policy %s, for %q: %s",
			account, r.Workload, r.Policy, r.User, why(r)), true
	case audit.EventRevocation:
		switch {
		case good && !r.Revoked: // a dry run, or nothing to end: any caller can ask for that
			return description{}, false
		case good:
			return normal(reasonRevoked, "a credential in namespace %s was ended by %q", r.Namespace, r.User), true
		case r.Outcome == audit.OutcomeFailed || r.Refusal.Meaning().MayClear: // the cell's fault, not the caller's
			return warning(reasonRevocationFailed, "a credential in namespace %s could not be ended for %q: %s", r.Namespace, r.User, why(r)), true
		default:
			return description{}, false
		}
	case audit.EventReportRefused, audit.EventAuthenticationFailed, audit.EventAdmissionRefused, audit.EventRowChanged:
		return description{}, false
	default:
		return description{}, false
	}
}

func why(r audit.Record) string {
	if r.Refusal == "" {
		return "the hub failed; its log has the fault under request " + r.RequestID
	}
	return fmt.Sprintf("%s: %s", r.Refusal, r.Message)
}

func normal(reason, format string, args ...any) description {
	return description{corev1.EventTypeNormal, reason, cut(fmt.Sprintf(format, args...))}
}

func warning(reason, format string, args ...any) description {
	return description{corev1.EventTypeWarning, reason, cut(fmt.Sprintf(format, args...))}
}

func cut(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	const mark = "…"
	end := maxMessage - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
