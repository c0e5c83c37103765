package stance

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/decisions"
	"cellcast.io/cellcast/pkg/refusal"
)

func TestWhatCanBeDeclared(t *testing.T) {
	for value, want := range map[string]struct {
		err      string
		declared bool
	}{
		"fail":        {"", false},
		"last-known":  {"", true},
		"eu-1":        {"", true},
		"":            {"must be fail, last-known or the name of a cell", false},
		"Eu_1":        {"must be fail, last-known or the name of a cell", false},
		"lastknown":   {"did you mean last-known?", false},
		"last--known": {"did you mean last-known?", false},
	} {
		var s Stance
		got := ""
		if err := s.Set(value); err != nil {
			got = err.Error()
		} else if s.String() != value {
			t.Errorf("%q became %q", value, s.String())
		}
		if got != want.err || s.Declared() != want.declared {
			t.Errorf("%q: got %q, declared %t", value, got, s.Declared())
		}
	}
	if zero := (Stance{}); zero.String() != "fail" || zero.Declared() {
		t.Errorf("undeclared is %s", zero.String())
	}
}

func TestAnswer(t *testing.T) {
	decided := decisions.Decision{Cell: cellcastv1alpha1.CellReference{Name: "eu-1", Endpoint: "https://eu-1.example.com"},
		Policy: "payments", DecidedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	cached := Answer{decided.Cell, "payments", "cache", "stale", decided.DecidedAt}
	pinned := Answer{Cell: cellcastv1alpha1.CellReference{Name: "eu-1"}, Source: "pinned", Confidence: "none"}
	traced := func(stage cellcastv1alpha1.Stage) *refusal.Refusal {
		return refusal.New(refusal.NoEligibleCells, "").WithCandidates([]cellcastv1alpha1.Candidate{
			{Cell: "eu-1", Verdict: cellcastv1alpha1.VerdictExcluded, Stage: stage, Reason: "Why", Message: "so"}}, 0)
	}
	for name, test := range map[string]struct {
		stance  string
		refused []*refusal.Refusal
		last    error
		want    Answer
		err     string
	}{
		"no answer, last-known":               {"last-known", nil, nil, cached, ""},
		"no answer, a pinned cell":            {"eu-1", nil, nil, pinned, ""},
		"no answer, and nothing declared":     {"fail", nil, nil, Answer{}, "the stance is to fail"},
		"no answer, and no decision":          {"last-known", nil, errors.New("nothing there"), Answer{}, "nothing there"},
		"a pinned cell needs no decision":     {"eu-1", nil, errors.New("nothing there"), pinned, ""},
		"left out for its capacity":           {"last-known", []*refusal.Refusal{traced("capacity")}, nil, cached, ""},
		"a cached cell that was ruled out":    {"last-known", []*refusal.Refusal{traced("state")}, nil, Answer{}, "eu-1 isn't used: so (Why)"},
		"a pinned cell that was ruled out":    {"eu-1", []*refusal.Refusal{traced("state")}, nil, Answer{}, "eu-1 isn't used: so (Why)"},
		"ruled out before the hub went away":  {"eu-1", []*refusal.Refusal{traced("state"), refusal.New(refusal.RateLimited, "")}, nil, Answer{}, "eu-1 isn't used: so (Why)"},
		"a policy's no, and no decision":      {"last-known", []*refusal.Refusal{refusal.New(refusal.NoPolicy, "")}, errors.New("nothing there"), Answer{}, "it stands in for a hub that can't decide, and is no way past NoPolicy"},
		"a mint that failed before the end":   {"eu-1", []*refusal.Refusal{refusal.New(refusal.MintUnavailable, ""), traced("capacity")}, nil, Answer{}, "it stands in for a hub that can't decide, and is no way past MintUnavailable"},
		"a replica that couldn't decide yet":  {"last-known", []*refusal.Refusal{refusal.New(refusal.PlacementUnavailable, "")}, nil, cached, ""},
		"a cell that the caller may not know": {"eu-1", []*refusal.Refusal{refusal.New(refusal.CapacityUnknown, "").WithCandidates(nil, 1)}, nil, Answer{}, "eu-1 isn't used: it isn't among the cells that you may reach"},
	} {
		t.Run(name, func(t *testing.T) {
			var s Stance
			if err := s.Set(test.stance); err != nil {
				t.Fatal(err)
			}
			got, err := s.Answer(test.refused, func() (decisions.Decision, error) {
				if test.last != nil {
					return decisions.Decision{}, test.last
				}
				return decided, nil
			})
			if test.err == "" && err != nil || test.err != "" && (err == nil || err.Error() != test.err) {
				t.Errorf("got %v, want %q", err, test.err)
			}
			if err == nil {
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
