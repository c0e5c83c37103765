// Package audit is the trail of what the hub decided and issued: one record
// per placement decision, one per mint and one per revocation, one per refusal
// at a door, one per row whose conditions the hub changed. Refusals carry the
// same fields as successes.
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
	// came through and went to. The caller may have chosen it.
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
	// Dark says that the caller asked for a dark cell.
	Dark bool `json:"dark,omitempty"`
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
	// Target is the brought target, as target:<uid>.
	Target string `json:"target,omitempty"`
	// Run is the id of the run of the probe.
	Run string `json:"run,omitempty"`
	// Confidence says how much was known when the cell was chosen.
	Confidence string `json:"confidence,omitempty"`
	// Candidates are all registered cells, each once, with the verdict on it.
	Candidates []Candidate `json:"candidates,omitempty"`

	// Refusal is the code of the refusal.
	Refusal refusal.Code `json:"refusal,omitempty"`
	// Message is the message of the refusal, as the caller read it.
	Message string `json:"message,omitempty"`
	// Reason says in one word why a token wasn't believed. The caller reads 401
	// and no reason.
	Reason string `json:"reason,omitempty"`

	// Namespace and ServiceAccount are whose credential was asked for.
	Namespace      string `json:"namespace,omitempty"`
	ServiceAccount string `json:"service_account,omitempty"`
	// Sealed says that the credential was encrypted to a key of the caller's.
	Sealed bool `json:"sealed,omitempty"`
	// Revocable says that the credential ends with a Secret of its own.
	Revocable bool `json:"revocable,omitempty"`
	// BoundTo is the name of that Secret on the cell: the same in the record of
	// the mint and in the record of the revocation.
	BoundTo string `json:"bound_to,omitempty"`
	// Revoked says that there was a credential, and that it was ended.
	Revoked bool `json:"revoked,omitempty"`
	// TTLSeconds is the life that the hub asked the cell for.
	TTLSeconds int64 `json:"ttl_seconds,omitempty"`
	// ExpiresAt is when the credential really ends.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// RevokesAt is when the cell's agent is to end a revocable credential; the
	// agent may be away, so ExpiresAt is the bound that holds.
	RevokesAt time.Time `json:"revokes_at,omitzero"`
	// JTI is the id of the credential, which the cell's audit log has too.
	JTI string `json:"jti,omitempty"`
	// TokenSHA256 is the SHA-256 of the whole token, in hexadecimal.
	TokenSHA256 string `json:"token_sha256,omitempty"`

	// Kind and Name are the row that was kept out, changed, probed or minted for,
	// the source of a credential that was read, or what a pod handed in and the
	// pod. Of what has a namespace, the name is NAMESPACE/NAME.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Changes are the conditions of the row that the hub changed.
	Changes []Change `json:"changes,omitempty"`

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

// Change is a condition of a row that the hub set anew. The row has the message.
type Change struct {
	// Condition is the type of the condition.
	Condition string `json:"condition"`
	// From and FromReason are its status and reason before; empty when the row
	// had no such condition.
	From       string `json:"from,omitempty"`
	FromReason string `json:"from_reason,omitempty"`
	// To and ToReason are its status and reason now.
	To       string `json:"to"`
	ToReason string `json:"to_reason"`
}
