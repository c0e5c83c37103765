package cli

import (
	"errors"
	"fmt"
	"time"

	"cellcast.io/cellcast/pkg/cli/bring"
	"cellcast.io/cellcast/pkg/cli/door"
	"cellcast.io/cellcast/pkg/cli/terminal"
	"cellcast.io/cellcast/pkg/refusal"
)

// The exit codes.
const (
	exitDone         = 0
	exitOther        = 1
	exitUsage        = 2
	exitRefused      = 3
	exitUnavailable  = 4
	exitNoCredential = 5
)

// exitCodes is what they mean, for the help.
const exitCodes = `Exit codes:
  0  done: with place, a cell was decided
  1  anything that isn't below, such as a file that can't be written
  2  wrong use: nothing was asked
  3  refused, and asking again won't change that: a policy, a permission or the
     request has to change
  4  no decision now: the hub, or every cell, is unavailable; asking later can help
  5  a cell was chosen and there is no credential for it`

// report is what the caller is told about a failure.
type report struct {
	exit int
	// says is what happened, next what to do; next may be empty.
	says, next string
	// run is the command that next ends with, where that is to be pasted; may be empty.
	run string
	// stance is why a declared stance didn't answer; may be empty.
	stance string
	// requestID is where to look in the hub's audit log; may be empty.
	requestID string
	// trace is why no cell was chosen, where the user asked for it.
	trace *refusal.Trace
}

// tell writes the report for a person.
func (e Env) tell(r report, command string) {
	e.say("Error: %s", terminal.Printable(r.says))
	if r.exit == exitUsage {
		e.say("See %s --help", command)
	}
	if r.stance != "" {
		e.say("%s", terminal.Printable(r.stance))
	}
	if r.next != "" {
		e.say("%s", terminal.Printable(r.next))
	}
	if r.run != "" {
		e.say("  %s", terminal.Printable(r.run))
	}
	if r.requestID != "" {
		e.say("Request id: %s", terminal.Printable(r.requestID))
	}
	if r.trace != nil {
		_ = e.writeTrace(r.trace) // as say: there is nobody left to tell
	}
}

// usageError is a wrong use of the command line.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

// noCredentialError is an answer with a cell and without the credential that
// was asked for.
type noCredentialError struct{ message string }

func (e *noCredentialError) Error() string { return e.message }

// placeError is a failure of place, with what its user wants to hear of it.
type placeError struct {
	err error
	// stance is why the declared stance didn't answer; empty where none was.
	stance  string
	explain bool
}

func (e *placeError) Error() string { return e.err.Error() }
func (e *placeError) Unwrap() error { return e.err }

// stoodInError says that a stance answered where a credential was asked for too.
// The answer has been printed.
type stoodInError struct{ cell string }

func (e *stoodInError) Error() string {
	return fmt.Sprintf("%s was decided without the hub, and there is no credential for it: a credential never falls back", e.cell)
}

// explain is the one place where an error becomes an exit code and words.
func explain(err error, now time.Time) report {
	r := classify(err, now)
	var asked *requestError
	if errors.As(err, &asked) {
		r.requestID = asked.requestID
	}
	var place *placeError
	if errors.As(err, &place) {
		r.stance = place.stance
		if refused, ok := refusal.FromStatus(err); ok && place.explain {
			r.trace = refused.Trace
		}
	}
	return r
}

func classify(err error, now time.Time) report {
	var (
		usage        *usageError
		doorUsage    *door.UsageError
		noCredential *noCredentialError
		stoodIn      *stoodInError
		asked        *requestError
		target       interface{ report() report }
		site         *bring.Error
	)
	switch {
	case errors.As(err, &usage), errors.As(err, &doorUsage):
		return report{exit: exitUsage, says: err.Error()}
	case errors.As(err, &noCredential):
		return report{exit: exitNoCredential, says: err.Error(), next: "Show this to the platform team: the hub should have refused instead."}
	case errors.As(err, &stoodIn):
		return report{exit: exitNoCredential, says: err.Error(),
			next: "Use an access of your own to " + stoodIn.cell + ", or run this again when the hub decides; -o name and --dry-run ask for the cell alone."}
	case errors.As(err, &target):
		return target.report()
	case errors.As(err, &site):
		return siteFailure(err, site)
	case !errors.As(err, &asked):
		return report{exit: exitOther, says: err.Error()}
	}
	if r, ok := refusal.FromStatus(err); ok {
		return refused(r, asked)
	}
	if r, ok := answered(asked, now); ok {
		return r
	}
	return unanswered(asked)
}

// refused is the report of a refusal of cellcast's own.
func refused(r *refusal.Refusal, asked *requestError) report {
	next := r.Code.Meaning().Next
	switch {
	case asked.about.mint && ofTarget(r.Code):
		return report{exit: refusalExit(r.Code), says: r.Error(), next: asked.probe()}
	case asked.about.target != "" && r.Code == refusal.MintUnavailable:
		// The table speaks of a cell, and none was asked for, nor a token.
		next = "Retry; if it lasts, show the message to the platform team."
	}
	if r.RetryAfter > 0 {
		next += fmt.Sprintf(" The hub says to wait %s.", r.RetryAfter)
	}
	return report{exit: refusalExit(r.Code), says: r.Error(), next: next}
}

// ofTarget reports whether it's a brought target that gives no token, which its
// owner mends: neither the platform team nor time does.
func ofTarget(code refusal.Code) bool {
	switch code {
	case refusal.MintUnavailable, refusal.MintFailed, refusal.TargetNotReady:
		return true
	default:
		return false
	}
}

// refusalExit is the exit code of a refusal.
func refusalExit(code refusal.Code) int {
	switch code {
	case refusal.NoPolicy, refusal.DarkNotPermitted, refusal.CellChoiceNotPermitted,
		refusal.NoPermittedCells, refusal.InvalidRequest, refusal.NotOwner:
		return exitRefused
	case refusal.NoEligibleCells, refusal.CapacityUnknown, refusal.PlacementUnavailable, refusal.RateLimited,
		refusal.TargetNotReady:
		return exitUnavailable
	case refusal.MintUnavailable, refusal.MintFailed:
		return exitNoCredential
	default:
		return exitRefused
	}
}
