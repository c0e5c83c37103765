package failure_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cellcast.io/cellcast/pkg/cell/failure"
)

func TestFromStatusSortsAnAnswerByItsCode(t *testing.T) {
	code := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code}}
	}
	tests := map[string]struct {
		err      error
		kind     failure.Kind
		answered bool
	}{
		"401":                          {code(401), failure.Unauthenticated, true},
		"403":                          {code(403), failure.Forbidden, true},
		"404 of an API server":         {code(404), failure.NotFound, true},
		"400":                          {code(400), failure.Rejected, true},
		"409":                          {code(409), failure.Rejected, true},
		"413":                          {code(413), failure.Rejected, true},
		"422 of an admission policy":   {code(422), failure.Rejected, true},
		"429":                          {code(429), failure.Unavailable, true},
		"500":                          {code(500), failure.Unavailable, true},
		"503":                          {code(503), failure.Unavailable, true},
		"504":                          {code(504), failure.Unavailable, true},
		"a redirect":                   {code(302), failure.Unexpected, true},
		"a status without a code":      {code(0), failure.Unexpected, true},
		"a wrapped 403":                {fmt.Errorf("minting: %w", code(403)), failure.Forbidden, true},
		"no answer":                    {errors.New("connection refused"), failure.Unexpected, false},
		"404 of something else's page": {pageNotFound(), failure.Unexpected, true},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			kind, answered := failure.FromStatus(tt.err)
			if kind != tt.kind || answered != tt.answered {
				t.Errorf("got %s, %t; want %s, %t", kind, answered, tt.kind, tt.answered)
			}
		})
	}
}

func TestOfReadsTheCellsKindAndNotTheStatusOfTheHubInTheChain(t *testing.T) {
	hubs := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden}}
	err := fmt.Errorf("minting: %w", &failure.Error{Kind: failure.NoHubToken, Cell: "fra-1", Err: hubs})
	if got := failure.Of(err); got != failure.NoHubToken {
		t.Errorf("got %s, want NoHubToken", got)
	}
}

func TestAnErrorThatIsNoCallsFailureIsUnexpected(t *testing.T) {
	if got := failure.Of(errors.New("boom")); got != failure.Unexpected {
		t.Errorf("got %s", got)
	}
	if got := failure.RetryAfter(errors.New("boom")); got != 0 {
		t.Errorf("advises to wait %s", got)
	}
}

func TestErrorNamesCellKindAndCause(t *testing.T) {
	err := &failure.Error{Kind: failure.Unreachable, Cell: "fra-1", RetryAfter: 3 * time.Second, Err: errors.New("no route to host")}
	if got, want := err.Error(), "cell fra-1: Unreachable: no route to host"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := failure.RetryAfter(fmt.Errorf("minting: %w", err)); got != 3*time.Second {
		t.Errorf("advises to wait %s", got)
	}
}

func TestOnlyWhatNobodyHasToChangeMayClear(t *testing.T) {
	for kind, want := range map[failure.Kind]bool{
		failure.Unauthenticated: false,
		failure.Forbidden:       false,
		failure.NotFound:        false,
		failure.Rejected:        false,
		failure.Unavailable:     true,
		failure.Unreachable:     true,
		failure.NoHubToken:      true,
		failure.Interrupted:     true,
		failure.Unexpected:      false,
		"Invented":              false,
	} {
		if got := kind.MayClear(); got != want {
			t.Errorf("%s may clear: %t, want %t", kind, got, want)
		}
	}
}

// pageNotFound is what client-go makes of a 404 whose body isn't a Status.
func pageNotFound() error {
	return apierrors.NewGenericServerResponse(404, "POST", schema.GroupResource{Resource: "serviceaccounts"}, "deployer", "404 page not found", 0, true)
}
