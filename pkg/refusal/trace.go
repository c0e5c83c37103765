package refusal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// MaxCandidates is the most cells that a refusal names.
const MaxCandidates = 256

// Trace is why no cell was chosen: the cells that the caller may reach, each
// once. Of a cell that isn't in a whole trace, the caller knows that it may not
// reach it.
type Trace struct {
	// Candidates have a name, a verdict and, where they were excluded, stage,
	// reason and message; the figures of a placement's trace don't travel.
	Candidates []v1alpha1.Candidate
	// Hidden is the number of registered cells that the caller may not reach.
	Hidden int32
	// Left is the number of reachable cells for which there was no room.
	Left int
}

// The types of the causes that a trace travels in.
const (
	causeCandidate metav1.CauseType = "Candidate"
	causeHidden    metav1.CauseType = "HiddenCells"
	causeLeft      metav1.CauseType = "CandidatesLeft"
)

// WithCandidates returns the refusal with what the hub says of the cells that
// the caller may reach, and the number of the others. Of more than
// MaxCandidates cells, those are named first that a stance may answer with.
func (r *Refusal) WithCandidates(reachable []v1alpha1.Candidate, hidden int32) *Refusal {
	c := *r
	c.Trace = &Trace{Hidden: hidden}
	if len(reachable) > MaxCandidates {
		reachable = slices.Clone(reachable)
		slices.SortStableFunc(reachable, func(a, b v1alpha1.Candidate) int { return rank(a) - rank(b) })
		c.Trace.Left = len(reachable) - MaxCandidates
		reachable = reachable[:MaxCandidates]
	}
	for _, candidate := range reachable {
		c.Trace.Candidates = append(c.Trace.Candidates, v1alpha1.Candidate{Cell: candidate.Cell,
			Verdict: candidate.Verdict, Stage: candidate.Stage, Reason: candidate.Reason, Message: candidate.Message})
	}
	return &c
}

func rank(c v1alpha1.Candidate) int {
	if usable(c) {
		return 0
	}
	return 1
}

// usable reports whether nothing but its capacity speaks against a cell.
func usable(c v1alpha1.Candidate) bool {
	switch c.Verdict {
	case v1alpha1.VerdictChosen, v1alpha1.VerdictEligible:
		return true
	case v1alpha1.VerdictExcluded:
		return c.Stage == v1alpha1.StageCapacity
	default:
		return false
	}
}

// RulesOut says why a stance may not answer this refusal with a cell; empty
// where it may.
func (r *Refusal) RulesOut(cell string) string {
	stance := r.Code.Meaning().Stance
	switch {
	case stance == StanceNever:
		return "a stance is no way past " + string(r.Code)
	case r.Trace == nil && stance == StanceUndecided:
		return ""
	case r.Trace == nil:
		return "the hub didn't say which cells it left out for their capacity alone"
	}
	for _, c := range r.Trace.Candidates {
		switch {
		case c.Cell != cell:
		case usable(c):
			return ""
		default:
			return fmt.Sprintf("%s (%s)", c.Message, c.Reason)
		}
	}
	if r.Trace.Left > 0 {
		return fmt.Sprintf("the hub's answer doesn't speak of it: there was no room for %d of the cells that you may reach", r.Trace.Left)
	}
	return "it isn't among the cells that you may reach"
}

// causes is the trace as it travels.
func (t *Trace) causes() []metav1.StatusCause {
	if t == nil {
		return nil
	}
	var out []metav1.StatusCause
	for _, c := range t.Candidates {
		out = append(out, metav1.StatusCause{Type: causeCandidate, Field: c.Cell,
			Message: fmt.Sprintf("%s/%s/%s: %s", c.Verdict, c.Stage, c.Reason, c.Message)})
	}
	out = append(out, metav1.StatusCause{Type: causeHidden, Message: strconv.Itoa(int(t.Hidden))})
	if t.Left > 0 {
		out = append(out, metav1.StatusCause{Type: causeLeft, Message: strconv.Itoa(t.Left)})
	}
	return out
}

// traceOf reads the trace from the causes of an answer; nil where there is none.
// A cell that it can't read is counted as left out, so that nothing follows from
// its absence.
func traceOf(causes []metav1.StatusCause) *Trace {
	var t Trace
	var found bool
	for _, cause := range causes {
		switch cause.Type {
		case causeCandidate:
			c, ok := candidateOf(cause)
			if ok && len(t.Candidates) < MaxCandidates {
				t.Candidates = append(t.Candidates, c)
			} else {
				t.Left++
			}
		case causeHidden:
			n, _ := strconv.ParseInt(cause.Message, 10, 32) // 0 where it's no number
			t.Hidden = int32(max(n, 0))
		case causeLeft:
			n, _ := strconv.ParseInt(cause.Message, 10, 32)
			t.Left += int(max(n, 1))
		default:
			continue
		}
		found = true
	}
	if !found {
		return nil
	}
	return &t
}

func candidateOf(cause metav1.StatusCause) (v1alpha1.Candidate, bool) {
	verdict, rest, ok := strings.Cut(cause.Message, "/")
	stage, rest, ok2 := strings.Cut(rest, "/")
	reason, message, ok3 := strings.Cut(rest, ": ")
	return v1alpha1.Candidate{Cell: cause.Field, Verdict: v1alpha1.Verdict(verdict), Stage: v1alpha1.Stage(stage),
		Reason: reason, Message: message}, ok && ok2 && ok3 && cause.Field != ""
}
