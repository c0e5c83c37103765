// Package stance is what a client answers where the hub can't: ADR-006. Its user
// declares it beforehand; undeclared, nothing but the hub answers.
//
// A stance stands in for a hub that can't decide, and is never a way past one
// that did: not past a policy, not to a cell that the hub has just ruled out,
// and never to a credential.
package stance

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/decisions"
	"cellcast.io/cellcast/pkg/refusal"
)

// Stance is what the user declared; the zero value is fail.
type Stance struct {
	// value is empty, lastKnown or the name of a cell.
	value string
}

const (
	fail      = "fail"
	lastKnown = "last-known"
)

// Set makes the stance a flag.
func (s *Stance) Set(value string) error {
	switch {
	case value == fail:
		s.value = ""
	case value == lastKnown:
		s.value = lastKnown
	case strings.ReplaceAll(value, "-", "") == "lastknown":
		return errors.New("did you mean last-known?")
	case len(validation.IsDNS1123Subdomain(value)) > 0:
		return errors.New("must be fail, last-known or the name of a cell")
	default:
		s.value = value
	}
	return nil
}

// String is the stance as it's declared.
func (s *Stance) String() string {
	if s.value == "" {
		return fail
	}
	return s.value
}

// Type is what the help shows for a value.
func (s *Stance) Type() string { return "fail|last-known|CELL" }

// Declared reports whether anything but the hub may answer.
func (s Stance) Declared() bool { return s.value != "" }

// Answer is what is answered in the hub's place. There is no credential in it.
type Answer struct {
	Cell       cellcastv1alpha1.CellReference // of a pinned cell the name alone
	Policy     string                         // empty of a pinned cell
	Source     cellcastv1alpha1.DecisionSource
	Confidence cellcastv1alpha1.Confidence
	DecidedAt  time.Time // zero of a pinned cell
}

// Answer returns what to answer in place of a hub that said nothing, or nothing
// but these refusals. last returns the hub's last decision. The error says why
// the stance has no answer.
func (s Stance) Answer(refused []*refusal.Refusal, last func() (decisions.Decision, error)) (Answer, error) {
	for _, r := range refused {
		if r.Code.Meaning().Stance == refusal.StanceNever {
			return Answer{}, fmt.Errorf("it stands in for a hub that can't decide, and is no way past %s", r.Code)
		}
	}
	answer, err := s.propose(last)
	if err != nil {
		return Answer{}, err
	}
	for _, r := range refused {
		if why := r.RulesOut(answer.Cell.Name); why != "" {
			return Answer{}, fmt.Errorf("%s isn't used: %s", answer.Cell.Name, why)
		}
	}
	return answer, nil
}

func (s Stance) propose(last func() (decisions.Decision, error)) (Answer, error) {
	switch s.value {
	case "":
		return Answer{}, errors.New("the stance is to fail")
	case lastKnown:
		d, err := last()
		return Answer{Cell: d.Cell, Policy: d.Policy, DecidedAt: d.DecidedAt,
			Source: cellcastv1alpha1.SourceCache, Confidence: cellcastv1alpha1.ConfidenceStale}, err
	default:
		return Answer{Cell: cellcastv1alpha1.CellReference{Name: s.value},
			Source: cellcastv1alpha1.SourcePinned, Confidence: cellcastv1alpha1.ConfidenceNone}, nil
	}
}
