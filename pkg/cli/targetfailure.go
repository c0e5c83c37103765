package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"cellcast.io/cellcast/pkg/cli/bring"
)

// siteError is a failure of which more is known than the cluster says.
type siteError struct {
	err  error
	exit int
	// next and run are those of the report.
	next, run string
}

func (e *siteError) Error() string { return e.err.Error() }

func (e *siteError) Unwrap() error { return e.err }

func (e *siteError) report() report {
	return report{exit: e.exit, says: e.Error(), next: e.next, run: e.run}
}

// beforehandError is a failure before this run created anything.
type beforehandError struct{ err error }

func (e *beforehandError) Error() string { return e.err.Error() }

func (e *beforehandError) Unwrap() error { return e.err }

// siteFailure is the report of an object that couldn't be created or deleted; err
// is all that is known of it. What the cluster says is shown as it is: a webhook's
// words are meant for the user.
func siteFailure(err error, failed *bring.Error) report {
	r := report{exit: exitOther, says: failed.Error()}
	stays, again := "What was done so far stays; the same command goes on from there.", "Run the same command again: it goes on where it stopped."
	if _, ok := errors.AsType[*beforehandError](err); ok {
		stays, again = "This run created nothing.", "This run created nothing: run the same command again."
	}
	s := statusOf(failed)
	switch {
	case errors.Is(failed, bring.ErrForeign):
		r.exit, r.next = exitRefused, "Choose another name, or see whose it is and delete it."
	case s == nil:
		r.exit, r.next = unansweredAt(failed, again)
	case s.Code == http.StatusUnauthorized:
		r.exit, r.next = exitRefused, fmt.Sprintf("Log in again at %s: kubectl auth whoami shows whether it worked.", failed.Where)
	case s.Code == http.StatusForbidden && strings.Contains(s.Message, "admission webhook"):
		r.exit = exitRefused
	case s.Code == http.StatusForbidden:
		r.exit, r.next = exitRefused, fmt.Sprintf("It takes somebody who may do that at %s. %s", failed.Where, stays)
	case s.Code == http.StatusUnprocessableEntity, s.Code == http.StatusBadRequest:
		r.exit = exitRefused
	case s.Code == http.StatusNotFound:
		r.next = fmt.Sprintf("Is the namespace there, and is it the right context of %s? At the hub, is cellcast installed?", failed.Where)
	case s.Code >= http.StatusInternalServerError, s.Code == http.StatusTooManyRequests:
		r.exit, r.next = exitUnavailable, again
	}
	return r
}

// unansweredAt is what a request without an answer means.
func unansweredAt(failed *bring.Error, again string) (exit int, next string) {
	switch {
	case errors.Is(failed, context.Canceled):
		return exitOther, again
	case isTLS(failed):
		return exitOther, fmt.Sprintf("Check the CA in the kubeconfig of %s.", failed.Where)
	case errors.Is(failed, context.DeadlineExceeded), isConnection(failed):
		return exitUnavailable, fmt.Sprintf("Check the way to %s. %s", failed.Where, again)
	default:
		return exitOther, ""
	}
}
