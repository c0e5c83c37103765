package refusal

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEachCodeTravelsAsTheRecordSays(t *testing.T) {
	want := map[Code]struct {
		http     int
		mayClear bool
		stance   Stance
	}{
		NoPolicy:               {http.StatusForbidden, false, StanceNever},
		DarkNotPermitted:       {http.StatusForbidden, false, StanceNever},
		CellChoiceNotPermitted: {http.StatusForbidden, false, StanceNever},
		NoPermittedCells:       {http.StatusConflict, false, StanceNever},
		InvalidRequest:         {http.StatusBadRequest, false, StanceNever},
		NoEligibleCells:        {http.StatusServiceUnavailable, true, StanceUnranked},
		CapacityUnknown:        {http.StatusServiceUnavailable, true, StanceUnranked},
		PlacementUnavailable:   {http.StatusServiceUnavailable, true, StanceUndecided},
		MintUnavailable:        {http.StatusServiceUnavailable, true, StanceNever},
		MintFailed:             {http.StatusServiceUnavailable, true, StanceNever},
		RateLimited:            {http.StatusTooManyRequests, true, StanceUndecided},
		NotOwner:               {http.StatusForbidden, false, StanceNever},
		TargetNotReady:         {http.StatusServiceUnavailable, true, StanceNever},
	}
	if len(want) != len(Meanings()) {
		t.Errorf("the table has %d codes, this test %d", len(Meanings()), len(want))
	}
	for _, m := range Meanings() {
		t.Run(string(m.Code), func(t *testing.T) {
			if m.HTTP != want[m.Code].http || m.MayClear != want[m.Code].mayClear {
				t.Errorf("HTTP %d, may clear %t; want %+v", m.HTTP, m.MayClear, want[m.Code])
			}
			if m.Stance != want[m.Code].stance {
				t.Errorf("may a stance answer: %v; want %v", m.Stance, want[m.Code].stance)
			}
			if (m.RetryAfter > 0) != m.MayClear {
				t.Errorf("advises to retry after %s, though it may clear: %t", m.RetryAfter, m.MayClear)
			}
			if m.Says == "" || m.Next == "" {
				t.Error("says nothing to the caller")
			}
			sent := &Refusal{Code: m.Code, Message: "a message", Field: "spec.ttl"}
			got, ok := FromStatus(fmt.Errorf("wrapped: %w", sent.Status()))
			if !ok {
				t.Fatal("the client doesn't recognise it")
			}
			sent.RetryAfter = m.RetryAfter
			if diff := cmp.Diff(sent, got, cmp.AllowUnexported(Refusal{})); diff != "" {
				t.Errorf("sent and received differ (-sent +received):\n%s", diff)
			}
		})
	}
}

func TestStatusIsWhatAnAPIServerSends(t *testing.T) {
	got := (&Refusal{Code: MintUnavailable, Message: "no answer", RetryAfter: 1500 * time.Millisecond}).Status().Status()
	want := metav1.Status{
		Status: metav1.StatusFailure, Code: 503, Reason: metav1.StatusReasonServiceUnavailable,
		Message: "MintUnavailable: no answer",
		Details: &metav1.StatusDetails{
			RetryAfterSeconds: 2,
			Causes:            []metav1.StatusCause{{Type: "MintUnavailable", Message: "no answer"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestFromStatusTellsAnswersOfTheHubFromThoseOfOthers(t *testing.T) {
	status := func(s metav1.Status) error { return &apierrors.StatusError{ErrStatus: s} }
	tests := map[string]struct {
		err  error
		want Code
	}{
		"a bare 429 is priority and fairness": {apierrors.NewTooManyRequests("slow down", 3), RateLimited},
		"a field that doesn't decode":         {apierrors.NewBadRequest("unknown field"), InvalidRequest},
		"a plain 403 is RBAC's":               {apierrors.NewForbidden(metav1.SchemeGroupVersion.WithResource("x").GroupResource(), "", nil), ""},
		"a gateway's 503":                     {apierrors.NewServiceUnavailable("no backend"), ""},
		"no connection":                       {errors.New("connection refused"), ""},
		"a cause that isn't a code": {status(metav1.Status{Code: 503,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "Invented"}}}}), ""},
		"a code under another's HTTP status": {status(metav1.Status{Code: 503,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "NoPolicy"}}}}), ""},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			got, ok := FromStatus(tt.err)
			if ok != (tt.want != "") || (ok && got.Code != tt.want) {
				t.Errorf("got %v, %t; want %q", got, ok, tt.want)
			}
		})
	}
}

func TestToAPIShowsARefusalAndHidesAFault(t *testing.T) {
	cause := errors.New("dial tcp 10.1.2.3:6443")
	if got := ToAPI(New(MintUnavailable, "cell a can't be reached").Because(cause), "id-1"); strings.Contains(got.Error(), "10.1.2.3") {
		t.Errorf("the cause is shown: %v", got)
	}
	got := ToAPI(fmt.Errorf("read the view: %w", cause), "id-1")
	if strings.Contains(got.Error(), "10.1.2.3") || !strings.Contains(got.Error(), "id-1") {
		t.Errorf("got %v; want the request id and nothing of the fault", got)
	}
	if !apierrors.IsInternalError(got) {
		t.Errorf("got %v, want an internal error", got)
	}
	notFound := apierrors.NewNotFound(metav1.SchemeGroupVersion.WithResource("cells").GroupResource(), "a")
	if got := ToAPI(notFound, "id-1"); !apierrors.IsNotFound(got) {
		t.Errorf("got %v, want the storage's own answer as it was", got)
	}
	if got := ToAPI(fmt.Errorf("ask the cell: %w", notFound), "id-1"); !apierrors.IsInternalError(got) {
		t.Errorf("got %v, want the answer of another server hidden", got)
	}
}

// Who mends a brought target isn't who mends a cell, and who asked for a cell has no
// target to probe.
func TestThatATargetIsMendedByItsOwnerIsToldOfTargetsAlone(t *testing.T) {
	for code, probes := range map[Code]bool{MintUnavailable: false, MintFailed: false, TargetNotReady: true} {
		if next := code.Meaning().Next; strings.Contains(next, "kubectl cellcast probe NAME") != probes {
			t.Errorf("%s: %s", code, next)
		}
	}
	doc, err := os.ReadFile("../../docs/refusals.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "\nOf a brought target, `MintUnavailable` and `MintFailed` are mended by its owner: `kubectl cellcast probe NAME`") {
		t.Error("docs/refusals.md doesn't say what holds for a target")
	}
}

func TestAnUnknownCodeDoesNotClear(t *testing.T) {
	if m := Code("FromTheFuture").Meaning(); m.MayClear || m.Next == "" {
		t.Errorf("got %+v", m)
	}
}

// The documentation has a row for each code, made from the table.
func TestDocumentationHasTheTable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/refusals.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Meanings() {
		clears := "no"
		if m.MayClear {
			clears = "after " + m.RetryAfter.String()
		}
		row := fmt.Sprintf("| `%s` | %d | %s | %s | %s | %s |", m.Code, m.HTTP, clears, m.Stance, m.Says, m.Next)
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/refusals.md lacks this row:\n%s", row)
		}
	}
}
