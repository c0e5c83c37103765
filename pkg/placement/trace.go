package placement

import (
	"time"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// Trace is why each registered cell was or wasn't chosen: every one of them,
// once, by name. It holds the figures; the sentences are written when somebody
// asks for them. A nil Trace is empty.
type Trace struct {
	fleet  *fleet
	policy string
	at     time.Time
	chosen int    // the slot, or nowhere
	lines  []line // by slot
}

// line is what the stages said of one cell.
type line struct {
	reason      Reason
	short       *capacity.Shortage // with DoesNotFit
	utilisation capacity.Utilisation
	received    time.Time // zero where the verdict rests on no report
	unreachable bool
}

// explain says of every cell what became of it.
func (q *question) explain(chosen int, policy string, now time.Time) *Trace {
	t := &Trace{fleet: q.fleet, policy: policy, at: now, chosen: chosen, lines: make([]line, len(q.fleet.cells))}
	for slot := range t.lines {
		q.describe(slot, &t.lines[slot])
	}
	return t
}

// describe tells no more of a cell than the stage that excluded it looked at.
func (q *question) describe(slot int, l *line) {
	l.reason = q.reason(slot)
	switch l.reason.Stage() {
	case v1alpha1.StagePermission, v1alpha1.StageState:
		return
	}
	l.unreachable = q.unreachable != nil && q.unreachable.has(slot)
	_, l.received = q.view.Health(slot)
	l.utilisation = q.view.Utilisation(slot, &q.demand)
	if l.reason == DoesNotFit {
		short, _ := q.view.Shortage(slot, &q.demand)
		l.short = &short
	}
}

// All returns every registered cell, for the audit record and for those who
// may list the rows.
func (t *Trace) All() []v1alpha1.Candidate {
	if t == nil {
		return nil
	}
	all := make([]v1alpha1.Candidate, len(t.lines))
	for slot := range t.lines {
		all[slot] = t.candidate(slot)
	}
	return all
}

// Reachable returns the cells that the caller may reach, and the number of the
// others.
func (t *Trace) Reachable() (reachable []v1alpha1.Candidate, hidden int32) {
	if t == nil {
		return nil, 0
	}
	for slot := range t.lines {
		if t.lines[slot].reason == OutsidePolicy {
			hidden++
			continue
		}
		reachable = append(reachable, t.candidate(slot))
	}
	return reachable, hidden
}

// HasAlternative reports whether another cell could have been chosen, and be
// asked for a credential.
func (t *Trace) HasAlternative() bool {
	if t == nil {
		return false
	}
	for slot := range t.lines {
		if l := &t.lines[slot]; slot != t.chosen && l.reason == "" && !l.unreachable {
			return true
		}
	}
	return false
}

func (t *Trace) candidate(slot int) v1alpha1.Candidate {
	l := &t.lines[slot]
	c := v1alpha1.Candidate{
		Cell:               t.fleet.names[slot],
		Verdict:            t.verdict(slot),
		Stage:              l.reason.Stage(),
		Reason:             string(l.reason),
		Message:            t.message(l),
		UtilisationPercent: l.utilisation.Percent(),
		WorstResource:      string(l.utilisation.Resource),
	}
	if l.reason == "" && l.unreachable {
		c.Reason, c.Message = string(Unreachable), "no credential can be had of the cell now, so it's chosen only where no other is left"
	}
	if !l.received.IsZero() {
		seconds := int64(t.age(l) / time.Second)
		c.ReportAgeSeconds = &seconds
	}
	return c
}

func (t *Trace) verdict(slot int) v1alpha1.Verdict {
	switch {
	case slot == t.chosen:
		return v1alpha1.VerdictChosen
	case t.lines[slot].reason == "":
		return v1alpha1.VerdictEligible
	default:
		return v1alpha1.VerdictExcluded
	}
}

func (t *Trace) age(l *line) time.Duration { return max(0, t.at.Sub(l.received)) }
