package capacity_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/capacity"
)

func TestObserve(t *testing.T) {
	// Each report comes after one of sequence 7 that was taken and received at
	// noon and shows 40 % of cpu.
	tests := map[string]struct {
		cell            string
		sequence        int64
		taken, received time.Time
		want            string // the refusal
	}{
		"takes the next report":                     {"a", 8, at(30), at(30), ""},
		"takes a report of a slow clock":            {"a", 8, at(-60), at(30), ""},
		"takes a report of a fast clock":            {"a", 8, at(60), at(30), ""},
		"takes a report in place of a stale one":    {"a", 8, at(600), at(600), ""},
		"refuses a cell that isn't registered":      {"c", 8, at(30), at(30), `InvalidRequest: metadata.name: cell "c" is not registered`},
		"refuses the same report again":             {"a", 7, at(30), at(30), "InvalidRequest: spec.sequence: 7 doesn't exceed 7, that of the last report: this one is a replay"},
		"refuses an older report":                   {"a", 6, at(30), at(30), "InvalidRequest: spec.sequence: 6 doesn't exceed 7, that of the last report: this one is a replay"},
		"refuses a report from before the window":   {"a", 8, at(-60.1), at(30), "InvalidRequest: spec.observedAt: is 1m30s ago and a report counts for 1m30s: send a new one, or set the cell's clock"},
		"refuses a report from too far ahead":       {"a", 8, at(60.1), at(30), "InvalidRequest: spec.observedAt: is 30s in the future and at most 30s is taken: set the cell's clock"},
		"refuses a replay when the report is stale": {"a", 7, at(600), at(600), "InvalidRequest: spec.sequence: 7 doesn't exceed 7, that of the last report: this one is a replay"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ix := newIndex()
			observe(t, ix, 7, noon, "cpu=4")
			before, _ := ix.Describe("a", test.received)

			receipt, refused := ix.Observe(test.cell, parse(t, spec(t, test.sequence, test.taken, "cpu=9")), test.received)
			if test.want == "" {
				if refused != nil {
					t.Fatal(refused)
				}
				want := capacity.Receipt{ReceivedAt: test.received, StaleAt: test.received.Add(90 * time.Second)}
				if diff := cmp.Diff(want, receipt); diff != "" {
					t.Error(diff)
				}
				if got := shown(t, ix, "a", test.received); got != "Fresh 90.0 cpu" {
					t.Errorf("the report is shown as %s", got)
				}
				return
			}
			if refused == nil {
				t.Fatal("taken")
			}
			if diff := cmp.Diff(test.want, refused.Error()); diff != "" {
				t.Error(diff)
			}
			after, _ := ix.Describe("a", test.received)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the refused report changed the index: %s", diff)
			}
		})
	}
}

func TestHealthFollowsFromTheTimeOfTheQuestion(t *testing.T) {
	ix := newIndex()
	observe(t, ix, 1, noon, "cpu=4")
	for _, step := range []struct {
		cell string
		now  time.Time
		want string
	}{
		{"b", noon, "Unknown"},
		{"a", noon, "Fresh 40.0 cpu"},
		{"a", at(89.999), "Fresh 40.0 cpu"},
		{"a", at(90), "Stale"},
		{"b", at(9000), "Unknown"},
		{"c", noon, "not registered"},
	} {
		if got := shown(t, ix, step.cell, step.now); got != step.want {
			t.Errorf("%s at %s: got %s, want %s", step.cell, step.now.Sub(noon), got, step.want)
		}
	}
	observe(t, ix, 2, at(9000), "cpu=5")
	if got := shown(t, ix, "a", at(9000)); got != "Fresh 50.0 cpu" {
		t.Errorf("got %s after a new report", got)
	}
}

func TestTheTimesAreSettings(t *testing.T) {
	ix := capacity.New(capacity.Options{Window: 10 * time.Second, Hold: 4 * time.Second}, noon)
	ix.Sync([]string{"a"}, nil)
	observe(t, ix, 1, noon, "cpu=4")
	ix.Reserve(capacity.Reservation{Cell: "a", Amounts: amounts(t, "cpu=1"), At: noon}, noon)
	for _, step := range []struct {
		now  time.Time
		want string
	}{
		{at(3.9), "Fresh 50.0 cpu"}, {at(4), "Fresh 40.0 cpu"}, {at(9.9), "Fresh 40.0 cpu"}, {at(10), "Stale"},
	} {
		if got := shown(t, ix, "a", step.now); got != step.want {
			t.Errorf("at %s: got %s, want %s", step.now.Sub(noon), got, step.want)
		}
	}
}

func TestSync(t *testing.T) {
	ix := newIndex()
	observe(t, ix, 7, noon, "cpu=4")
	ix.Reserve(capacity.Reservation{Cell: "a", Amounts: amounts(t, "cpu=1"), At: noon}, noon)

	ran := false
	ix.Sync([]string{"c", "a", "0", "a"}, func() { ran = true })
	if !ran {
		t.Error("the second argument didn't run")
	}
	for cell, want := range map[string]string{"0": "Unknown", "a": "Fresh 50.0 cpu", "b": "not registered", "c": "Unknown"} {
		if got := shown(t, ix, cell, noon); got != want {
			t.Errorf("%s: got %s, want %s", cell, got, want)
		}
	}

	ix.Sync(nil, nil)
	ix.Sync([]string{"a"}, nil)
	if got := shown(t, ix, "a", noon); got != "Unknown" {
		t.Errorf("a cell that went and came back is %s", got)
	}
	observe(t, ix, 1, noon, "cpu=2")
	if got := shown(t, ix, "a", noon); got != "Fresh 20.0 cpu" {
		t.Errorf("got %s", got)
	}
}
