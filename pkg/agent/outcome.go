package agent

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// outcome is what became of one attempt to report. The set is closed; its
// words are the label of the metric.
type outcome string

const (
	// accepted: the hub took the report.
	accepted outcome = "accepted"
	// refused: the hub answered that it won't take it (4xx). Asking again at
	// once would get the same answer.
	refused outcome = "refused"
	// failed: there was no answer, or one that may clear by itself: no
	// connection, no token, a timeout, a 429, a 5xx.
	failed outcome = "failed"
	// withheld: the agent's own view of the cell is too old to report.
	withheld outcome = "withheld"
)

func outcomes() []outcome { return []outcome{accepted, refused, failed, withheld} }

func outcomeOf(err error) outcome {
	if err == nil {
		return accepted
	}
	if errors.As(err, new(blindError)) {
		return withheld
	}
	switch code := statusOf(err); {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return failed
	case code >= 400 && code < 500:
		return refused
	default:
		return failed
	}
}

// statusOf is the HTTP status of the hub's answer, zero when there was none.
func statusOf(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

// advisedWait is the Retry-After of the hub's answer, zero where there is none.
func advisedWait(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// advice says what an operator can do about a refusal.
func advice(err error) string {
	switch statusOf(err) {
	case http.StatusUnauthorized:
		return "compare the issuer and subject of the token in --token-file with spec.reporter of the Cluster, and its audience with the hub's --reporter-audience"
	case http.StatusForbidden:
		return "a reporter may report for its own cell alone: compare --cell with the name of the Cluster"
	case http.StatusNotFound:
		return "no Cluster on the hub has the name in --cell, or --hub isn't a cellcast hub"
	default:
		return "the hub's message says what is wrong with the report"
	}
}
