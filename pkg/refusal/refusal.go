// Package refusal is the closed set of answers that say no. Hub and client
// share it: the hub turns a Refusal into a metav1.Status, the client turns the
// Status back, and the table in codes.go says for both what a code means,
// which HTTP status it travels with and whether asking again can help.
//
// A refusal is an answer that a stranger may read. Everything else that goes
// wrong is a fault: it's logged, and the caller learns only that it happened.
package refusal

import (
	"errors"
	"fmt"
	"time"
)

// Refusal is an answer that says no.
type Refusal struct {
	// Code is the machine-readable reason.
	Code Code
	// Message says what happened, for the caller. It holds no secret and
	// nothing that the caller may not know.
	Message string
	// Field is the path of the offending field, where there is one.
	Field string
	// RetryAfter is how long to wait before asking again; zero where the code
	// doesn't clear by itself, or where nothing better than the table is known.
	RetryAfter time.Duration
	// Trace is what the hub says of the cells that the caller may reach; nil
	// where it says nothing of any.
	Trace *Trace
	// cause is for the log alone.
	cause error
}

// New returns a refusal with a formatted message.
func New(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns an InvalidRequest refusal about one field.
func Invalid(field, format string, args ...any) *Refusal {
	return &Refusal{Code: InvalidRequest, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Because returns the refusal with the cause kept for the log. The cause is
// never part of the message.
func (r *Refusal) Because(cause error) *Refusal {
	c := *r
	c.cause = cause
	return &c
}

// RetriedAfter returns the refusal with this advice on when to ask again.
func (r *Refusal) RetriedAfter(d time.Duration) *Refusal {
	c := *r
	c.RetryAfter = d
	return &c
}

// Error is the code, the field and the message.
func (r *Refusal) Error() string {
	if r.Field != "" {
		return fmt.Sprintf("%s: %s: %s", r.Code, r.Field, r.Message)
	}
	return fmt.Sprintf("%s: %s", r.Code, r.Message)
}

// Unwrap returns the cause, for the log.
func (r *Refusal) Unwrap() error { return r.cause }

// As returns the refusal in err's chain, or nil.
func As(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}
