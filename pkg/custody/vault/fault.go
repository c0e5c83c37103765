package vault

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/hashicorp/vault/api"
)

// Kind is why a secret couldn't be read.
type Kind string

// The kinds. There are no others.
const (
	// Absent: there is no such secret, or its newest version was deleted.
	Absent Kind = "Absent"
	// NoKey: it has no text under the key.
	NoKey Kind = "NoKey"
	// Denied: Vault knows the hub and forbids it this, also after a new login.
	Denied Kind = "Denied"
	// LoginRefused: Vault doesn't let the hub in.
	LoginRefused Kind = "LoginRefused"
	// NoHubToken: the hub could not get the token that it logs in with.
	NoHubToken Kind = "NoHubToken"
	// Sealed: Vault is sealed, or can't serve (429 and 5xx).
	Sealed Kind = "Sealed"
	// Unreachable: no answer came in time, or its certificate isn't trusted.
	Unreachable Kind = "Unreachable"
	// Unexpected: the answer isn't understood. It was a redirect, too large, or
	// not of a KV version 2 engine.
	Unexpected Kind = "Unexpected"
)

// Error is why a secret couldn't be read. It's a fault: its text is for the
// operator's log. It quotes nothing of an answer.
type Error struct {
	Kind Kind
	err  error
}

// Error is the kind and the cause.
func (e *Error) Error() string { return fmt.Sprintf("Vault: %s: %v", e.Kind, e.err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

var errRedirect = errors.New("the answer is a redirect, which isn't followed: give the address of the active node, or let standby nodes forward requests")

// fault sorts an error of the library, whose text can hold what Vault answered.
func fault(err error) *Error {
	if answer, ok := errors.AsType[*api.ResponseError](err); ok {
		return &Error{Kind: kindOf(answer.StatusCode), err: fmt.Errorf("the answer is %d", answer.StatusCode)}
	}
	if errors.Is(err, errRedirect) {
		return &Error{Kind: Unexpected, err: errRedirect}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Error{Kind: Unexpected, err: errors.New("the answer is over 1 MiB")}
	}
	if cause, is := connectionFault(err); is {
		return &Error{Kind: Unreachable, err: cause}
	}
	return &Error{Kind: Unexpected, err: errors.New("the answer isn't understood")}
}

// connectionFault tells what befell the connection. net/http quotes what came
// where it isn't HTTP, so only errors of known kinds are told in their own words.
func connectionFault(err error) (cause error, is bool) {
	var known error
	if address, ok := errors.AsType[*net.OpError](err); ok {
		known = address
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		known = certificate
	}
	_, broken := errors.AsType[*url.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer came in time: %w", context.DeadlineExceeded), true
	case errors.Is(err, context.Canceled):
		return context.Canceled, true
	case known != nil:
		return known, true
	case broken, errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection broke, or what came isn't HTTP"), true
	default:
		return nil, false
	}
}

func kindOf(status int) Kind {
	switch {
	case status == http.StatusForbidden, status == http.StatusUnauthorized:
		return Denied
	case status == http.StatusNotFound:
		return Absent
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return Sealed
	default:
		return Unexpected
	}
}

// loginFault is fault for the login: what Vault answers of its own accord is a
// refusal, for a role that isn't there is a 400.
func loginFault(err error) *Error {
	f := fault(err)
	switch f.Kind {
	case Denied, Absent, Unexpected:
		if _, answered := errors.AsType[*api.ResponseError](err); answered {
			f.Kind = LoginRefused
		}
	case NoKey, LoginRefused, NoHubToken, Sealed, Unreachable:
	default:
	}
	return f
}

// KindOf returns why a Source couldn't read; Unexpected for an error that isn't of
// one.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Unexpected
}
