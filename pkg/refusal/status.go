package refusal

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status returns the refusal as the error that an API server sends. The code
// is details.causes[0].reason, which Go calls Type; the trace is in the causes
// after it.
func (r *Refusal) Status() *apierrors.StatusError {
	m := r.Code.Meaning()
	details := &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: metav1.CauseType(r.Code), Message: r.Message, Field: r.Field}},
	}
	details.Causes = append(details.Causes, r.Trace.causes()...)
	if m.MayClear {
		after := r.RetryAfter
		if after <= 0 {
			after = m.RetryAfter
		}
		details.RetryAfterSeconds = int32(min(math.Ceil(after.Seconds()), math.MaxInt32))
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    int32(m.HTTP),
		Reason:  reason(m.HTTP),
		Message: r.Error(),
		Details: details,
	}}
}

// reason is the apimachinery reason that goes with an HTTP status of the table.
func reason(code int) metav1.StatusReason {
	switch code {
	case http.StatusBadRequest:
		return metav1.StatusReasonBadRequest
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	default:
		return metav1.StatusReasonUnknown
	}
}

// ToAPI is the one place where an error leaves the hub. A refusal travels as it
// is, and so does a status that was written for the caller, such as a 404. Any
// other error is a fault: the caller learns the request id to look for in the
// log and nothing more.
//
// The status of another API server's answer, such as a cell's, is not for the
// caller: whoever asked that server wraps it into a refusal or a fault whose
// chain ends there.
func ToAPI(err error, requestID string) error {
	if err == nil {
		return nil
	}
	if r := As(err); r != nil {
		return identified(r.Status(), requestID)
	}
	if _, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // a wrapped status is a fault's cause
		return err
	}
	return identified(apierrors.NewInternalError(
		fmt.Errorf("the hub failed to answer; its log says why under request id %s", requestID)), requestID)
}

// causeRequestID is the type of the cause that says under which id the hub's
// audit trail and log have the request.
const causeRequestID metav1.CauseType = "RequestID"

func identified(s *apierrors.StatusError, requestID string) error {
	s.ErrStatus.Details.Causes = append(s.ErrStatus.Details.Causes, metav1.StatusCause{Type: causeRequestID, Message: requestID})
	return s
}

// RequestID is the id under which the hub that answered with this error has the
// request in its audit trail; empty where the answer has none.
func RequestID(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == causeRequestID {
			return cause.Message
		}
	}
	return ""
}

// FromStatus returns the refusal that an error from a hub carries. It is false
// for an error that isn't a cellcast refusal: a gateway's 503, a plain 403 of
// RBAC, no connection at all. A bare 429, which the API server's priority and
// fairness sends, is RateLimited.
func FromStatus(err error) (*Refusal, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, false
	}
	s := status.Status()
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if m := Code(cause.Type).Meaning(); isKnown(m.Code) && int32(m.HTTP) == s.Code {
				return &Refusal{Code: m.Code, Message: cause.Message, Field: cause.Field,
					RetryAfter: seconds(s.Details.RetryAfterSeconds), Trace: traceOf(s.Details.Causes)}, true
			}
		}
	}
	switch s.Code {
	case http.StatusTooManyRequests:
		r := &Refusal{Code: RateLimited, Message: s.Message}
		if s.Details != nil {
			r.RetryAfter = seconds(s.Details.RetryAfterSeconds)
		}
		return r, true
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return &Refusal{Code: InvalidRequest, Message: s.Message}, true
	default:
		return nil, false
	}
}

func seconds(n int32) time.Duration { return time.Duration(max(n, 0)) * time.Second }

func isKnown(c Code) bool {
	for _, m := range Meanings() {
		if m.Code == c {
			return true
		}
	}
	return false
}
