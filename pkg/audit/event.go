package audit

// Event is what a record speaks of.
type Event string

// The events. There are no others.
const (
	// EventPlacement is a decision on where a workload goes. It says nothing of
	// a credential: a dry run decides and mints nothing.
	EventPlacement Event = "placement"
	// EventMint is an attempt to get a credential from a cell.
	EventMint Event = "mint"
	// EventRevocation is an attempt to end a credential before its time, by the
	// caller that it was issued to.
	EventRevocation Event = "revocation"
	// EventReportRefused is a capacity report that wasn't taken.
	EventReportRefused Event = "report_refused"
	// EventAuthenticationFailed is a token that was shown and not believed.
	EventAuthenticationFailed Event = "authentication_failed"
	// EventAdmissionRefused is a row that was kept out because it held, or
	// could hold, a credential.
	EventAdmissionRefused Event = "admission_refused"
	// EventCredentialRead is a read of a brought target's credential where its
	// owner keeps it. The hub reads it for itself: there is no acting principal.
	EventCredentialRead Event = "credential_read" //nolint:gosec // an event, not a credential
	// EventProbeRequested is somebody's question for a probe of a brought target.
	EventProbeRequested Event = "probe_requested"
	// EventProbe is a run of the probe that has ended: refused where an item
	// failed.
	EventProbe Event = "probe"
	// EventArtifact is what a pod handed in, once it has proved who it is.
	EventArtifact Event = "artifact"
	// EventArtifactRefused is a post to the external listener that wasn't taken.
	EventArtifactRefused Event = "artifact_refused"
	// EventRowChanged is a row whose conditions the hub itself changed.
	EventRowChanged Event = "row_changed"
)

// Events are all of them.
func Events() []Event {
	return []Event{EventPlacement, EventMint, EventRevocation, EventReportRefused, EventAuthenticationFailed,
		EventAdmissionRefused, EventCredentialRead, EventProbeRequested, EventProbe, EventArtifact, EventArtifactRefused,
		EventRowChanged}
}

// ByStranger reports whether such a record can be caused at will by somebody
// whom no policy gives anything: who shows junk, asks a webhook, or speaks for a
// cell. What can be a flood may be lost in one, for nothing is issued on it.
func (e Event) ByStranger() bool {
	switch e {
	case EventAuthenticationFailed, EventAdmissionRefused, EventReportRefused, EventArtifactRefused:
		return true
	case EventPlacement, EventMint, EventRevocation, EventCredentialRead, EventProbeRequested, EventProbe, EventArtifact, EventRowChanged:
		return false
	default:
		return false
	}
}

// Outcome is how it ended.
type Outcome string

// The outcomes. There are no others.
const (
	// OutcomeAllowed: the caller got what it asked for.
	OutcomeAllowed Outcome = "allowed"
	// OutcomeRefused: the caller got a refusal; the record has its code.
	OutcomeRefused Outcome = "refused"
	// OutcomeFailed: the hub itself failed; its log has the fault.
	OutcomeFailed Outcome = "failed"
)

// Outcomes are all of them.
func Outcomes() []Outcome { return []Outcome{OutcomeAllowed, OutcomeRefused, OutcomeFailed} }
