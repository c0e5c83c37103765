package refusal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

func excluded(cell string, stage v1alpha1.Stage, reason, message string) v1alpha1.Candidate {
	return v1alpha1.Candidate{Cell: cell, Verdict: v1alpha1.VerdictExcluded, Stage: stage, Reason: reason, Message: message}
}

func TestTheTraceTravels(t *testing.T) {
	full := excluded("eu-2", v1alpha1.StageCapacity, "DoesNotFit", "cpu: 3 free")
	full.UtilisationPercent, full.ReportAgeSeconds = "91.0", ptr.To[int64](3)
	sent := New(NoEligibleCells, "none").WithCandidates([]v1alpha1.Candidate{
		excluded("eu-1", v1alpha1.StageState, "Draining", "it drains"), full,
	}, 3)

	wire := sent.Status().Status().Details.Causes
	if diff := cmp.Diff([]metav1.StatusCause{
		{Type: "NoEligibleCells", Message: "none"},
		{Type: "Candidate", Field: "eu-1", Message: "Excluded/state/Draining: it drains"},
		{Type: "Candidate", Field: "eu-2", Message: "Excluded/capacity/DoesNotFit: cpu: 3 free"},
		{Type: "HiddenCells", Message: "3"},
	}, wire); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}

	got, _ := FromStatus(sent.Status())
	want := &Trace{Hidden: 3, Candidates: []v1alpha1.Candidate{
		excluded("eu-1", v1alpha1.StageState, "Draining", "it drains"),
		excluded("eu-2", v1alpha1.StageCapacity, "DoesNotFit", "cpu: 3 free"),
	}}
	if diff := cmp.Diff(want, got.Trace); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}
	if got, _ := FromStatus(New(CapacityUnknown, "none").Status()); got.Trace != nil {
		t.Errorf("an answer without a trace has %+v", got.Trace)
	}
}

func TestALongTraceIsCutAndSaysSo(t *testing.T) {
	var all []v1alpha1.Candidate
	for i := range MaxCandidates + 44 {
		all = append(all, excluded(fmt.Sprint("draining-", i), v1alpha1.StageState, "Draining", ""))
	}
	all = append(all, excluded("stale", v1alpha1.StageCapacity, "Stale", ""))
	got, _ := FromStatus(New(CapacityUnknown, "none").WithCandidates(all, 0).Status())
	if n := len(got.Trace.Candidates); n != 256 || got.Trace.Left != 45 {
		t.Errorf("%d candidates and %d left, want 256 and 45", n, got.Trace.Left)
	}
	if got.Trace.Candidates[0].Cell != "stale" {
		t.Error("a cell that a stance may answer with was cut")
	}
	if all[0].Cell != "draining-0" {
		t.Error("the caller's own slice was sorted")
	}
}

func TestAStanceIsNoWayToACellThatTheHubRuledOut(t *testing.T) {
	trace := []v1alpha1.Candidate{
		excluded("draining", v1alpha1.StageState, "Draining", "it drains"),
		excluded("dark", v1alpha1.StageState, "Dark", "it's dark"),
		excluded("outside", v1alpha1.StagePermission, "OutsidePolicy", "not selected"),
		excluded("stale", v1alpha1.StageCapacity, "Stale", "an old report"),
		{Cell: "eligible", Verdict: v1alpha1.VerdictEligible},
		{Cell: "odd", Verdict: "FromTheFuture", Stage: v1alpha1.StageCapacity, Reason: "New", Message: "a new word"},
	}
	whole := New(NoEligibleCells, "").WithCandidates(trace, 0)
	cut := New(NoEligibleCells, "").WithCandidates(trace, 0)
	cut.Trace.Left = 7
	for name, test := range map[string]struct {
		refused *Refusal
		cell    string
		want    string
	}{
		"draining":                             {whole, "draining", "it drains (Draining)"},
		"dark":                                 {whole, "dark", "it's dark (Dark)"},
		"outside the policy":                   {whole, "outside", "not selected (OutsidePolicy)"},
		"stale is what a stance is for":        {whole, "stale", ""},
		"eligible":                             {whole, "eligible", ""},
		"a verdict of a newer hub":             {whole, "odd", "a new word (New)"},
		"not in the trace":                     {whole, "other", "it isn't among the cells that you may reach"},
		"not in a trace that was cut":          {cut, "other", "the hub's answer doesn't speak of it: there was no room for 7 of the cells that you may reach"},
		"in a trace that was cut":              {cut, "stale", ""},
		"a hub that decided without a trace":   {New(NoEligibleCells, ""), "stale", "the hub didn't say which cells it left out for their capacity alone"},
		"a hub that hadn't begun to decide":    {New(PlacementUnavailable, ""), "stale", ""},
		"a hub that had no time":               {New(RateLimited, ""), "stale", ""},
		"undecided, and the cell draining yet": {New(PlacementUnavailable, "").WithCandidates(trace, 0), "draining", "it drains (Draining)"},
		"a policy's no":                        {New(NoPolicy, "").WithCandidates(trace, 0), "stale", "a stance is no way past NoPolicy"},
		"a mint that failed":                   {New(MintUnavailable, "").WithCandidates(trace, 0), "eligible", "a stance is no way past MintUnavailable"},
		"a code of a newer hub":                {New("FromTheFuture", ""), "stale", "a stance is no way past FromTheFuture"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.refused.RulesOut(test.cell); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What can't be read must not look like a cell's absence from a whole trace.
func TestACandidateThatCannotBeReadIsLeft(t *testing.T) {
	for _, message := range []string{"", "Excluded", "Excluded/capacity", "Excluded/capacity/Stale", "Excluded/capacity: x"} {
		status := New(CapacityUnknown, "").Status()
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes,
			metav1.StatusCause{Type: "Candidate", Field: "eu-1", Message: message})
		got, _ := FromStatus(status)
		if got.Trace == nil || got.Trace.Left != 1 || len(got.Trace.Candidates) != 0 {
			t.Errorf("%q: got %+v", message, got.Trace)
		}
		if why := got.RulesOut("eu-1"); !strings.HasPrefix(why, "the hub's answer doesn't speak of it") {
			t.Errorf("%q: got %q", message, why)
		}
	}
}
