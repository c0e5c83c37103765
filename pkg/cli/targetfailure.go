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

// siteFailure is the report of an object that couldn't be created or deleted. What
// the cluster says is shown as it is: a webhook's words are meant for the user.
func siteFailure(failed *bring.Error) report {
	r := report{exit: exitOther, says: failed.Error()}
	s := statusOf(failed)
	switch {
	case errors.Is(failed, bring.ErrForeign):
		r.exit, r.next = exitRefused, "Choose another name, or see whose it is and delete it."
	case s == nil:
		r.exit, r.next = unansweredAt(failed)
	case s.Code == http.StatusUnauthorized:
		r.exit, r.next = exitRefused, fmt.Sprintf("Log in again at %s: kubectl auth whoami shows whether it worked.", failed.Where)
	case s.Code == http.StatusForbidden && strings.Contains(s.Message, "admission webhook"):
		r.exit = exitRefused
	case s.Code == http.StatusForbidden:
		r.exit, r.next = exitRefused, fmt.Sprintf("It takes somebody who may do that at %s. What was created so far stays; the same command goes on from there.", failed.Where)
	case s.Code == http.StatusUnprocessableEntity, s.Code == http.StatusBadRequest:
		r.exit = exitRefused
	case s.Code == http.StatusNotFound:
		r.next = fmt.Sprintf("Is the namespace there, and is it the right context of %s? At the hub, is cellcast installed?", failed.Where)
	case s.Code >= http.StatusInternalServerError, s.Code == http.StatusTooManyRequests:
		r.exit, r.next = exitUnavailable, "Run the same command again: it goes on where it stopped."
	}
	return r
}

// unansweredAt is what a request without an answer means.
func unansweredAt(failed *bring.Error) (exit int, next string) {
	switch {
	case errors.Is(failed, context.Canceled):
		return exitOther, "Run the same command again: it goes on where it stopped."
	case isTLS(failed):
		return exitOther, fmt.Sprintf("Check the CA in the kubeconfig of %s.", failed.Where)
	case errors.Is(failed, context.DeadlineExceeded), isConnection(failed):
		return exitUnavailable, fmt.Sprintf("Check the way to %s, and run the same command again: it goes on where it stopped.", failed.Where)
	default:
		return exitOther, ""
	}
}
