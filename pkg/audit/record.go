// Package audit is the trail of what the hub decided and issued: one record
// per placement decision, one per mint, one per refusal at a door. Refusals
// carry the same fields as successes.
//
// A record has no field that could hold a token: the nearest are the digest of
// the whole token and its jti, which find the record that a leaked token came
// from and can't rebuild it. A test classifies every field and fails on one
// that it doesn't know.
package audit

import (
	"time"

	"cellcast.io/cellcast/pkg/refusal"
)

// Event is what a record speaks of.
type Event string

// The events. There are no others.
const (
	// EventPlacement is a decision on where a workload goes. It says nothing of
	// a credential: a dry run decides and mints nothing.
	EventPlacement Event = "placement"
	// EventMint is an attempt to get a credential from a cell.
	EventMint Event = "mint"
	// EventReportRefused is a capacity report that wasn't taken.
	EventReportRefused Event = "report_refused"
	// EventAuthenticationFailed is a token that was shown and not believed.
	EventAuthenticationFailed Event = "authentication_failed"
	// EventAdmissionRefused is a row that was kept out because it held, or
	// could hold, a credential.
	EventAdmissionRefused Event = "admission_refused"
)

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

// Record is one line of the trail. Records of one request, such as a placement
// and the mint that followed it, share the request id.
type Record struct {
	// Time is when the event ended.
	Time time.Time `json:"time"`
	// Event is what the record speaks of.
	Event Event `json:"event"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome"`
	// RequestID joins the records of one request, the answer and the log.
	RequestID string `json:"request_id,omitempty"`
	// AuditID is the id in the audit logs of the API servers that the request
	// came through and went to.
	AuditID string `json:"audit_id,omitempty"`

	// CallerClass is the kind of caller, by the authenticator that ran.
	CallerClass string `json:"caller_class,omitempty"`
	// User is the caller's name at the hub.
	User string `json:"user,omitempty"`
	// Issuer and Subject are those of the caller's own token, where it has one.
	Issuer  string `json:"issuer,omitempty"`
	Subject string `json:"subject,omitempty"`

	// Workload is what is to be placed, as the caller named it.
	Workload string `json:"workload,omitempty"`
	// DryRun says that the caller asked for a decision without a credential.
	DryRun bool `json:"dry_run,omitempty"`
	// Policy is the name of the policy that governed.
	Policy string `json:"policy,omitempty"`
	// Specificity is the number of that policy's constraints that matched.
	Specificity int `json:"specificity,omitempty"`
	// Strategy is how the cell was chosen.
	Strategy string `json:"strategy,omitempty"`
	// Cell is the cell that was chosen, named or reported for.
	Cell string `json:"cell,omitempty"`
	// Candidates are all registered cells, each once, with the verdict on it.
	Candidates []Candidate `json:"candidates,omitempty"`

	// Refusal is the code of the refusal.
	Refusal refusal.Code `json:"refusal,omitempty"`
	// Message is the message of the refusal, as the caller read it.
	Message string `json:"message,omitempty"`

	// Namespace and ServiceAccount are whose credential was asked for.
	Namespace      string `json:"namespace,omitempty"`
	ServiceAccount string `json:"service_account,omitempty"`
	// TTLSeconds is the life that the hub asked the cell for.
	TTLSeconds int64 `json:"ttl_seconds,omitempty"`
	// ExpiresAt is when the credential really ends.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// JTI is the id of the credential, which the cell's audit log has too.
	JTI string `json:"jti,omitempty"`
	// TokenSHA256 is the SHA-256 of the whole token, in hexadecimal.
	TokenSHA256 string `json:"token_sha256,omitempty"`

	// DurationMS is how long the event took, in milliseconds.
	DurationMS float64 `json:"duration_ms"`
}

// Candidate is the verdict on one cell.
type Candidate struct {
	// Cell is the cell's name.
	Cell string `json:"cell"`
	// Verdict is Chosen, Eligible or Excluded.
	Verdict string `json:"verdict"`
	// Stage is the filter stage that excluded it.
	Stage string `json:"stage,omitempty"`
	// Reason says in one word why.
	Reason string `json:"reason,omitempty"`
	// Message says it in a sentence.
	Message string `json:"message,omitempty"`
	// UtilisationPercent is how full its worst dimension would have been.
	UtilisationPercent string `json:"utilisation_percent,omitempty"`
	// WorstResource is that dimension.
	WorstResource string `json:"worst_resource,omitempty"`
	// ReportAgeSeconds is the age of the report that the verdict rests on.
	ReportAgeSeconds *int64 `json:"report_age_seconds,omitempty"`
}

// Sink takes records. Write returns when the record is where it belongs, and
// may be called by many at once.
type Sink interface {
	Write(Record)
}

// Tee is a Sink that hands each record to several, in order.
type Tee []Sink

// Write hands the record to each sink.
func (t Tee) Write(record Record) {
	for _, sink := range t {
		sink.Write(record)
	}
}
