package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/rehearsal"
	"cellcast.io/cellcast/pkg/cli/terminal"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
)

// rehearse answers from files.
func (e Env) rehearse(o *policyTestOptions) error {
	question, err := e.question(o)
	if err != nil {
		return e.listed(err)
	}
	answer, err := rehearsal.Ask(question, e.Now())
	if err != nil {
		return e.listed(err)
	}
	if err := e.printRehearsal(o, answer); err != nil {
		return err
	}
	if refused := answer.Refused(); refused != nil {
		// In the words that the hub's own refusal would have.
		return e.judge(o.expect, answer.Policy, &requestError{err: refused.Status()})
	}
	return e.judge(o.expect, answer.Policy, nil)
}

// question reads the files.
func (e Env) question(o *policyTestOptions) (rehearsal.Question, error) {
	q := rehearsal.Question{Workload: o.workload, Dark: o.dark, Ceiling: o.maxTTL}
	var err error
	if q.Policies, err = readRows(e, o.policies, rehearsal.ReadPolicies); err != nil {
		return q, err
	}
	if len(q.Policies) == 0 {
		return q, fmt.Errorf("there is no PlacementPolicy in %s", strings.Join(o.policies, ", "))
	}
	if len(o.cells) > 0 {
		if q.Cells, err = readRows(e, o.cells, rehearsal.ReadCells); err != nil {
			return q, err
		}
		if len(q.Cells) == 0 {
			return q, fmt.Errorf("there is no Cluster in %s", strings.Join(o.cells, ", "))
		}
	}
	q.Caller, err = e.callerOf(o)
	return q, err
}

// readRows reads files, and says what in them is of another kind.
func readRows[T any](e Env, paths []string, read func([]rehearsal.File) ([]T, []string, error)) ([]T, error) {
	files, err := rehearsal.ReadFiles(paths)
	if err != nil {
		return nil, err
	}
	rows, skipped, err := read(files)
	for _, what := range skipped {
		e.say("Skipped %s", terminal.Printable(what))
	}
	return rows, err
}

func (e Env) callerOf(o *policyTestOptions) (policy.Caller, error) {
	if o.claims == "" {
		return rehearsal.HubUser(o.user, o.groups), nil
	}
	content, err := os.ReadFile(o.claims)
	if err != nil {
		return policy.Caller{}, err
	}
	caller, skipped, err := rehearsal.ParseClaims(content)
	if err != nil {
		return policy.Caller{}, fmt.Errorf("the claims file %s %w", o.claims, err)
	}
	for _, name := range skipped {
		e.say("Skipped claim %q: it's a list of something else than text", name)
	}
	return caller, nil
}

// testAtHub asks the hub, as the caller.
func (e Env) testAtHub(ctx context.Context, o *policyTestOptions) error {
	hub, err := e.openHub(ctx, o.door, o.timeout)
	if err != nil {
		return err
	}
	spec := cellcastv1alpha1.PlacementSpec{Workload: o.workload, Dark: o.dark, Explain: true}
	answer, err := hub.place(ctx, spec, true)
	if err != nil {
		return e.judge(o.expect, "", e.inFormat(o.format, &placeError{err: err, explain: true}))
	}
	answer.Status.Credential = nil // nobody asked for one
	if err := e.printTestAtHub(o, answer); err != nil {
		return err
	}
	return e.judge(o.expect, answer.Status.Policy, nil)
}

// expectation is what must come of a test; the zero value is a decision.
type expectation struct{ policy, refusal string }

func (x expectation) check() error {
	if x.policy != "" && x.refusal != "" {
		return &usageError{"a policy governs or a refusal comes: leave out --expect or --expect-refusal"}
	}
	if x.refusal == "" {
		return nil
	}
	for _, m := range refusal.Meanings() {
		if string(m.Code) == x.refusal {
			return nil
		}
	}
	return &usageError{fmt.Sprintf("--expect-refusal %s is no refusal's code, such as NoPolicy", x.refusal)}
}

// judge compares what came with what was expected: governing is the policy that
// governs, empty for none, err a refusal or why there is no answer.
func (e Env) judge(x expectation, governing string, err error) error {
	refused, isRefusal := refusal.FromStatus(err)
	switch {
	case err != nil && !isRefusal:
		return err
	case x.refusal != "" && !isRefusal:
		return e.unexpected("policy %q governs, and the refusal %s was expected", governing, x.refusal)
	case x.refusal != "" && string(refused.Code) != x.refusal:
		return e.unexpected("the refusal %s was expected, and another one came: %v", x.refusal, refused)
	case x.refusal != "":
		e.say("Refused as expected: %s", terminal.Printable(refused.Error()))
		return nil
	case x.policy != "" && governing != "" && governing != x.policy:
		return e.unexpected("policy %q governs, and %q was expected to", governing, x.policy)
	default:
		return err
	}
}

// unexpected says what came in place of what was expected.
func (e Env) unexpected(format string, args ...any) error {
	e.say("Error: %s", terminal.Printable(fmt.Sprintf(format, args...)))
	return &exitStatus{exitRefused}
}
