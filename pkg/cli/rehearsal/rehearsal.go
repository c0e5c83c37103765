// Package rehearsal answers, without a hub, what a hub would: which policy
// governs a caller and why the others don't, what the credential is for and how
// long it lives, and which cells it reaches. It decides with the hub's own
// packages, in the hub's order, so that a policy can be tested before it ships.
//
// It knows no capacity: each cell counts as fresh and empty. So it says which
// cells would take the placement, never which of them gets it.
package rehearsal

import (
	"fmt"
	"strings"
	"time"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
)

// Question is a request together with the rows that would answer it.
type Question struct {
	Caller   policy.Caller
	Workload string
	// Dark asks for a dark cell, and for no other.
	Dark bool
	// Ceiling is the hub's --token-max-ttl.
	Ceiling time.Duration
	// Policies are all policies of the hub: one that is left out can't govern.
	Policies []Row[registry.PlacementPolicy]
	// Cells are the registered cells; nil where they aren't known.
	Cells []Row[registry.Cluster]
}

// Ask answers the question. A refusal is an answer, and stands in it. The error
// is a *Problems: a hub would refuse a row, so there is nothing to ask yet.
func Ask(q Question, now time.Time) (*Answer, error) {
	policies, err := compile(q.Policies)
	if err != nil {
		return nil, err
	}
	var problems Problems
	if checkNames(q.Cells, &problems); len(problems.All) > 0 {
		return nil, &problems
	}
	a := &Answer{Workload: q.Workload, Dark: q.Dark, Caller: q.Caller.String()}
	a.refuse(a.decide(q, policy.NewSet(policies), now))
	return a, nil
}

// decide goes the way of a request through the hub, and notes what it learns.
func (a *Answer) decide(q Question, set *policy.Set, now time.Time) *refusal.Refusal {
	if refused := policy.ParseWorkload(q.Workload); refused != nil {
		return refused
	}
	a.explain(q, set.Explain(q.Caller, q.Workload))
	result, refused := set.Govern(q.Caller, q.Workload)
	if refused != nil {
		return refused
	}
	p := result.Policy
	a.Policy, a.Specificity, a.Tied, a.Strategy = p.Name, result.Specificity, result.Tied, string(p.Strategy)
	scope, refused := p.Scope(q.Caller, q.Workload)
	if refused != nil {
		return refused
	}
	a.Credential = &Credential{Namespace: scope.Namespace, ServiceAccountName: scope.ServiceAccountName,
		Audiences: scope.Audiences, Revocable: scope.Revocable}
	if q.Cells == nil {
		a.Lives = lives(q, p)
	}
	return a.reach(q, &placement.Permission{
		Policy: p.Name, Selector: p.Selector, AllowDark: p.AllowDark, Strategy: p.Strategy,
	}, p, now)
}

// compile compiles the policies as the hub does, or says what is wrong with
// each that it would refuse.
func compile(rows []Row[registry.PlacementPolicy]) ([]*policy.Policy, error) {
	compiler, err := policy.NewCompiler()
	if err != nil {
		return nil, err
	}
	var problems Problems
	var compiled []*policy.Policy
	for _, row := range rows {
		p, errs := compiler.Compile(row.Object)
		for _, wrong := range errs {
			problems.add("%s: PlacementPolicy %s: %v", row.From, row.Object.Name, wrong)
		}
		compiled = append(compiled, p)
	}
	checkNames(rows, &problems)
	return compiled, problems.err()
}

// checkNames refuses rows without a name, and two of one name.
func checkNames[T any](rows []Row[T], problems *Problems) {
	from := map[string]string{}
	for _, row := range rows {
		name := row.name()
		first, twice := from[name]
		switch {
		case name == "":
			problems.add("%s: metadata.name: must have a name", row.From)
		case twice:
			problems.add("%s: metadata.name: %q is in %s too", row.From, name, first)
		}
		from[name] = row.From
	}
}

// Problems are what is wrong with rows, each with its file and field.
type Problems struct{ All []string }

// Error is the first of them, and their number.
func (p *Problems) Error() string {
	if len(p.All) == 1 {
		return p.All[0]
	}
	return fmt.Sprintf("%d problems, the first: %s", len(p.All), p.All[0])
}

// add adds a problem, on one line.
func (p *Problems) add(format string, args ...any) {
	lines := strings.FieldsFunc(fmt.Sprintf(format, args...), func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	p.All = append(p.All, strings.Join(lines, " "))
}

func (p *Problems) err() error {
	if len(p.All) == 0 {
		return nil
	}
	return p
}
