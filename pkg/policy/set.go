package policy

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"cellcast.io/cellcast/pkg/refusal"
)

// Set is all policies, ready to decide. It doesn't change, and may be used by
// several goroutines at once. The zero value refuses everyone.
type Set struct {
	policies []*Policy // by name

	// Every subject that could match a caller of the class, the most specific
	// first, then by the policy's name. A subject that is an expression alone
	// stands in each list.
	byIssuer  map[string][]candidate // pipelines of an issuer that some policy names
	pipelines []candidate            // any other pipeline
	hubUsers  []candidate
}

// candidate is a subject with its policy.
type candidate struct {
	policy  *Policy
	subject *subject
}

// NewSet returns the set of these policies, whose names must differ. The order
// doesn't matter.
func NewSet(policies []*Policy) *Set {
	s := &Set{policies: slices.Clone(policies), byIssuer: map[string][]candidate{}}
	slices.SortFunc(s.policies, func(a, b *Policy) int { return strings.Compare(a.Name, b.Name) })
	var all []candidate
	for _, p := range s.policies {
		for i := range p.subjects {
			all = append(all, candidate{p, &p.subjects[i]})
		}
		for _, issuer := range p.Issuers() {
			s.byIssuer[issuer] = nil
		}
	}
	// Stable: within a specificity the order by name stays.
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.subject.specificity, a.subject.specificity) })
	for _, c := range all {
		s.add(c)
	}
	return s
}

func (s *Set) add(c candidate) {
	switch issuer := c.subject.issuer; {
	case issuer != "":
		s.byIssuer[issuer] = append(s.byIssuer[issuer], c)
	case c.subject.isForHubUsers():
		s.hubUsers = append(s.hubUsers, c)
	default:
		for issuer, list := range s.byIssuer {
			s.byIssuer[issuer] = append(list, c)
		}
		s.pipelines = append(s.pipelines, c)
		s.hubUsers = append(s.hubUsers, c)
	}
}

// candidates returns the subjects that could match the caller.
func (s *Set) candidates(c *Caller) []candidate {
	if !c.IsPipeline() {
		return s.hubUsers
	}
	if list, known := s.byIssuer[c.Issuer]; known {
		return list
	}
	return s.pipelines
}

// Result is the policy that governs.
type Result struct {
	Policy *Policy
	// Specificity is the number of constraints that matched.
	Specificity int
	// Tied are the names, sorted, of other policies that match as specifically:
	// the name alone decided. It's worth telling the platform team.
	Tied []string
}

// Govern returns the policy that governs this caller and workload: of those
// whose workloads and one of whose subjects match, the one where the most
// constraints matched, and of several such the first by name. Which door a
// pipeline came through makes no difference, unless an expression reads user or
// groups.
//
// It refuses with NoPolicy when none matches.
func (s *Set) Govern(c Caller, workload string) (Result, *refusal.Refusal) {
	var (
		r    Result
		seen *Policy // the last that matched
		v    variables
	)
	for _, candidate := range s.candidates(&c) {
		if r.Policy != nil && candidate.subject.specificity < r.Specificity {
			break
		}
		p := candidate.policy
		if p == seen || !p.workloads.match(workload) {
			continue
		}
		if m := candidate.subject.mismatch(&c, &v); !m.none() {
			if _, beyond := errors.AsType[*boundsError](m.err); beyond {
				return Result{}, undecidable(c, p, m.err)
			}
			continue
		}
		if r.Policy == nil {
			r.Policy, r.Specificity = p, candidate.subject.specificity
		} else {
			r.Tied = append(r.Tied, p.Name)
		}
		seen = p
	}
	if r.Policy == nil {
		return Result{}, s.refuse(c, workload)
	}
	return r, nil
}

// undecidable refuses a caller that a policy's expression can't be asked about.
// To pass over the policy would let the caller choose a wider one, by a claim
// that it made long.
func undecidable(c Caller, p *Policy, cause error) *refusal.Refusal {
	return refusal.New(refusal.NoPolicy, "policy %q can't be decided for %s: %s; send shorter or fewer claims", p.Name, c, cause).Because(cause)
}

// refuse says who was refused, and whether another workload would help.
func (s *Set) refuse(c Caller, workload string) *refusal.Refusal {
	name := quoteAtMost(workload, maxWorkloadQuoted)
	if len(s.Reachable(c)) > 0 {
		return refusal.New(refusal.NoPolicy, "no PlacementPolicy for %s permits workload %s; "+
			"check the workload's name, or ask the platform team to add it to a policy", c, name)
	}
	return refusal.New(refusal.NoPolicy, "no PlacementPolicy matches %s, which asks for workload %s; "+
		"ask the platform team for a policy whose subjects match this identity", c, name)
}

// Reachable returns the policies that could govern the caller for one workload
// or another, the one that goes first first: those with a matching subject, in
// the order in which Govern prefers them, up to the first that is for every
// workload.
func (s *Set) Reachable(c Caller) []*Policy {
	var (
		reachable []*Policy
		v         variables
	)
	for _, candidate := range s.candidates(&c) {
		if slices.Contains(reachable, candidate.policy) || !candidate.subject.mismatch(&c, &v).none() {
			continue
		}
		reachable = append(reachable, candidate.policy)
		if candidate.policy.workloads.all {
			break
		}
	}
	return reachable
}
