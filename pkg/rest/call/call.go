// Package call is what every question to the hub has in common: who asks, by
// which request, and how the answer ends in the audit trail and on the wire.
package call

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	genericaudit "k8s.io/apiserver/pkg/audit"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/refusal"
)

// Call is one request.
type Call struct {
	// ID joins the answer, the audit records and the log.
	ID string
	// AuditID is the API servers' own, which the caller may have chosen.
	AuditID string
	// Caller is who asks.
	Caller caller.Identity
	// Started is when the hub took it up.
	Started time.Time
}

// From returns the call that ctx belongs to. A request without a user, which
// no authenticator lets through, is refused as a fault of the hub.
func From(ctx context.Context, now time.Time) (Call, error) {
	c := Call{ID: string(uuid.NewUUID()), Started: now}
	user, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return c, apierrors.NewUnauthorized("the request carries no identity")
	}
	c.AuditID = genericaudit.GetAuditIDTruncated(ctx)
	c.Caller = caller.From(user)
	return c, nil
}

// Record returns an audit record of the event with what is known of the call.
func (c Call) Record(event audit.Event) audit.Record {
	return audit.Record{
		Event:       event,
		RequestID:   c.ID,
		AuditID:     c.AuditID,
		CallerClass: c.Caller.Class.String(),
		User:        c.Caller.User,
		Issuer:      c.Caller.Issuer,
		Subject:     c.Caller.Subject,
	}
}

// End completes a record with how the event ended. since is when it began.
func End(record *audit.Record, err error, since, now time.Time) {
	record.Time = now
	record.DurationMS = float64(now.Sub(since).Microseconds()) / 1000
	switch r := refusal.As(err); {
	case err == nil:
		record.Outcome = audit.OutcomeAllowed
	case r != nil:
		record.Outcome, record.Refusal, record.Message = audit.OutcomeRefused, r.Code, r.Message
	case apierrors.IsNotFound(err): // what the caller named isn't there, or isn't for it to see
		record.Outcome, record.Message = audit.OutcomeRefused, "not found"
	default:
		record.Outcome = audit.OutcomeFailed
	}
}

// Conclude completes the record and writes it. It returns the error that the
// record speaks of, or, where all went well and the trail can't be written, the
// refusal with this code that comes of that.
func Conclude(trail audit.Sink, record audit.Record, err error, since, now time.Time, code refusal.Code) error {
	End(&record, err, since, now)
	if lost := trail.Write(record); lost != nil && err == nil {
		return Unaudited(code, lost)
	}
	return err
}

// Unaudited is the refusal of what would otherwise be in no audit trail.
func Unaudited(code refusal.Code, lost error) *refusal.Refusal {
	return refusal.New(code, "the hub can't write its audit trail, and issues nothing that isn't in it").Because(lost)
}

// Answer is err as the caller gets it. What the caller must not read, the cause
// of a refusal or a fault, is logged under the call's id.
func (c Call) Answer(ctx context.Context, err error) error {
	switch r := refusal.As(err); {
	case err == nil:
		return nil
	case r == nil:
		klog.FromContext(ctx).Error(err, "A request failed", "request", c.ID)
	case r.Unwrap() != nil:
		klog.FromContext(ctx).Info("A request was refused", "request", c.ID, "code", r.Code, "cause", cut(r.Unwrap()))
	}
	return refusal.ToAPI(err, c.ID)
}

// maxCause bounds what the log keeps of a cause, which may be a cell's own text.
const maxCause = 1 << 10

func cut(cause error) string { return fmt.Sprintf("%.*s", maxCause, cause.Error()) }
