package policy

import (
	"cmp"
	"fmt"
	"slices"
)

// Outcome is what became of a policy in a decision.
type Outcome string

// The outcomes.
const (
	// Governs: the policy decides.
	Governs Outcome = "Governs"
	// Tied: the policy matches as specifically as the one that governs, and
	// goes behind it by name.
	Tied Outcome = "Tied"
	// LessSpecific: the policy matches, with fewer constraints.
	LessSpecific Outcome = "LessSpecific"
	// OtherWorkloads: a subject matches, the workload doesn't.
	OtherWorkloads Outcome = "OtherWorkloads"
	// NoSubject: no subject matches.
	NoSubject Outcome = "NoSubject"
)

// Verdict is what became of one policy, and why.
type Verdict struct {
	Policy  string
	Outcome Outcome
	// Specificity is the number of constraints of the best matching subject;
	// zero when none matches.
	Specificity int
	// Reasons says of each subject up to the first that matches why it does or
	// doesn't, by its path, the one with the most constraints first. It may
	// quote the error of an expression, so it is for whoever writes policies
	// and not for the caller.
	Reasons []string
}

// Explain returns the verdict on every policy: those that match in the order
// in which they would govern, then the others by name. It agrees with Govern,
// and costs more.
func (s *Set) Explain(c Caller, workload string) []Verdict {
	verdicts := make([]Verdict, 0, len(s.policies))
	var v variables
	for _, p := range s.policies {
		verdicts = append(verdicts, p.judge(&c, &v, workload))
	}
	slices.SortStableFunc(verdicts, func(a, b Verdict) int {
		return cmp.Compare(b.rank(), a.rank())
	})
	for i := range verdicts {
		if verdicts[i].Outcome != LessSpecific {
			break
		}
		switch {
		case i == 0:
			verdicts[i].Outcome = Governs
		case verdicts[i].Specificity == verdicts[0].Specificity:
			verdicts[i].Outcome = Tied
		}
	}
	return verdicts
}

// rank is the specificity of a policy that could govern, else zero.
func (v Verdict) rank() int {
	if v.Outcome == LessSpecific {
		return v.Specificity
	}
	return 0
}

// judge is the verdict on one policy for itself: a policy that matches is
// LessSpecific until it's compared with the others.
func (p *Policy) judge(c *Caller, v *variables, workload string) Verdict {
	verdict := Verdict{Policy: p.Name, Outcome: NoSubject}
	for i := range p.subjects {
		s := &p.subjects[i]
		m := s.mismatch(c, v)
		verdict.Reasons = append(verdict.Reasons, fmt.Sprintf("spec.subjects[%d]: %s", s.index, m))
		if !m.none() {
			continue
		}
		verdict.Outcome, verdict.Specificity = LessSpecific, s.specificity
		if !p.workloads.match(workload) {
			verdict.Outcome = OtherWorkloads
			verdict.Reasons = append(verdict.Reasons,
				fmt.Sprintf("spec.workloads: none is %s", quoteAtMost(workload, maxWorkloadQuoted)))
		}
		break
	}
	return verdict
}

// Ambiguous returns the names, sorted, of the other policies that tie with p
// as they are written: for some workload that both are for, a caller matches a
// subject of each for the very same reasons, and with that equally
// specifically. The reasons are the same when the two subjects have the same
// issuer, subject, claims and expression, and for each of users, groups and
// serviceAccounts either no list or lists with a name in common.
//
// Policies with different constraints can tie for a caller, too, such as one
// for a repository and one for an environment. Only a request shows that:
// Result.Tied has it.
func (s *Set) Ambiguous(p *Policy) []string {
	var names []string
	for _, other := range s.policies {
		if other.Name != p.Name && p.workloads.overlap(&other.workloads) && p.sharesSubject(other) {
			names = append(names, other.Name)
		}
	}
	return names
}

func (p *Policy) sharesSubject(other *Policy) bool {
	for i := range p.subjects {
		for j := range other.subjects {
			if p.subjects[i].sameCallers(&other.subjects[j]) {
				return true
			}
		}
	}
	return false
}
