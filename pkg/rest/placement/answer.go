package placement

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/rest/credential"
)

// answer is the placement as the caller gets it, without a credential. Nothing
// is stored, so the name is only for a client that wants one.
func (s *Storage) answer(ctx context.Context, c call.Call, question *cellcastv1alpha1.Placement, d decision) *cellcastv1alpha1.Placement {
	answer := &cellcastv1alpha1.Placement{
		ObjectMeta: metav1.ObjectMeta{Name: question.Name, CreationTimestamp: metav1.NewTime(c.Started)},
		Spec:       question.Spec,
		Status: cellcastv1alpha1.PlacementStatus{
			RequestID:  c.ID,
			Cell:       credential.Reference(d.Cell),
			Policy:     d.issue.Policy.Name,
			Strategy:   string(d.issue.Policy.Strategy),
			Source:     cellcastv1alpha1.SourceHub,
			Confidence: d.Confidence,
		},
	}
	if answer.Name == "" {
		answer.Name = c.ID
	}
	switch {
	case !question.Spec.Explain:
	case s.SeesAll(ctx):
		answer.Status.Candidates = d.Trace.All()
	default:
		answer.Status.Candidates, answer.Status.HiddenCells = d.Trace.Reachable()
	}
	return answer
}

// candidates is the whole trace for the audit record.
func candidates(trace *placement.Trace) []audit.Candidate {
	all := trace.All()
	out := make([]audit.Candidate, len(all))
	for i, c := range all {
		out[i] = audit.Candidate{
			Cell:               c.Cell,
			Verdict:            string(c.Verdict),
			Stage:              string(c.Stage),
			Reason:             c.Reason,
			Message:            c.Message,
			UtilisationPercent: c.UtilisationPercent,
			WorstResource:      c.WorstResource,
			ReportAgeSeconds:   c.ReportAgeSeconds,
		}
	}
	return out
}
