package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestOutcomeOf(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want outcome
	}{
		"no error is a report that the hub took":        {nil, accepted},
		"a bad report is refused":                       {answer(http.StatusBadRequest, "", 0), refused},
		"a token that isn't the reporter's is refused":  {answer(http.StatusUnauthorized, "", 0), refused},
		"a cell that isn't registered is refused":       {answer(http.StatusNotFound, "", 0), refused},
		"a replay is refused":                           {answer(http.StatusConflict, "", 0), refused},
		"a refusal stays one when it's wrapped":         {fmt.Errorf("reporting: %w", answer(http.StatusForbidden, "", 0)), refused},
		"too many requests may clear":                   {answer(http.StatusTooManyRequests, "", 1), failed},
		"a request that timed out at the hub may clear": {answer(http.StatusRequestTimeout, "", 0), failed},
		"an unavailable hub may clear":                  {answer(http.StatusServiceUnavailable, "", 0), failed},
		"a redirect is no answer":                       {answer(http.StatusTemporaryRedirect, "", 0), failed},
		"no connection is no answer":                    {errors.New("connection refused"), failed},
		"a timeout is no answer":                        {context.DeadlineExceeded, failed},
		"a view that is too old withholds":              {blindError{time.Minute}, withheld},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(test.err); got != test.want {
				t.Errorf("outcome %q, want %q", got, test.want)
			}
		})
	}
}

func TestAdvicePointsAtWhatToCompare(t *testing.T) {
	for code, want := range map[int]string{
		http.StatusUnauthorized: "compare the issuer and subject of the token in --token-file with spec.reporter of the Cluster, and its audience with the hub's --reporter-audience",
		http.StatusForbidden:    "a reporter may report for its own cell alone: compare --cell with the name of the Cluster",
		http.StatusNotFound:     "no Cluster on the hub has the name in --cell, or --hub isn't a cellcast hub",
		http.StatusBadRequest:   "the hub's message says what is wrong with the report",
	} {
		if got := advice(answer(code, "", 0)); got != want {
			t.Errorf("advice on %d: %q, want %q", code, got, want)
		}
	}
}
