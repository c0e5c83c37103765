package capacity_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/capacity"
)

// event is something that happens to cell a.
type event struct {
	at   float64 // seconds after noon
	what string  // reserve, release or report
	// The amounts, or what the report says is requested.
	amounts string
	// made is when a reservation that is released was made.
	made float64
	// want is what the index then shows.
	want string
}

func TestReservations(t *testing.T) {
	tests := map[string][]event{
		"a reservation ends by time": {
			{at: 1, what: "reserve", amounts: "cpu=2", want: "Fresh 60.0 cpu"},
			{at: 60.9, want: "Fresh 60.0 cpu"},
			{at: 61, want: "Fresh 40.0 cpu"},
		},
		"a reservation ends at once when it's released": {
			{at: 1, what: "reserve", amounts: "cpu=2", want: "Fresh 60.0 cpu"},
			{at: 2, what: "reserve", amounts: "cpu=3", want: "Fresh 90.0 cpu"},
			{at: 3, what: "release", amounts: "cpu=2", made: 1, want: "Fresh 70.0 cpu"},
		},
		"a reservation ends when a report shows its pods": {
			{at: 1, what: "reserve", amounts: "cpu=2", want: "Fresh 60.0 cpu"},
			{at: 30, what: "report", amounts: "cpu=6", want: "Fresh 60.0 cpu"},
		},
		"pods that arrive in two reports count once": {
			{at: 1, what: "reserve", amounts: "cpu=4 pods=4", want: "Fresh 80.0 cpu"},
			{at: 20, what: "report", amounts: "cpu=5 pods=1", want: "Fresh 80.0 cpu"},
			{at: 50, what: "report", amounts: "cpu=8 pods=4", want: "Fresh 80.0 cpu"},
			{at: 61, want: "Fresh 80.0 cpu"},
		},
		"a report absorbs the oldest reservation first": {
			{at: 1, what: "reserve", amounts: "cpu=1", want: "Fresh 50.0 cpu"},
			{at: 11, what: "reserve", amounts: "cpu=2", want: "Fresh 70.0 cpu"},
			{at: 30, what: "report", amounts: "cpu=5", want: "Fresh 70.0 cpu"},
			{at: 61, want: "Fresh 70.0 cpu"},
			{at: 71, want: "Fresh 50.0 cpu"},
		},
		"a report that shows no growth leaves a reservation": {
			{at: 1, what: "reserve", amounts: "cpu=2", want: "Fresh 60.0 cpu"},
			{at: 30, what: "report", amounts: "cpu=4", want: "Fresh 60.0 cpu"},
		},
		"a report that shows less leaves a reservation": {
			{at: 1, what: "reserve", amounts: "cpu=2", want: "Fresh 60.0 cpu"},
			{at: 30, what: "report", amounts: "cpu=3", want: "Fresh 50.0 cpu"},
		},
		"a dimension that grows doesn't end what is held of another": {
			{at: 1, what: "reserve", amounts: "cpu=2 memory=50", want: "Fresh 60.0 cpu"},
			{at: 30, what: "report", amounts: "cpu=6", want: "Fresh 60.0 cpu"},
			{at: 31, what: "reserve", amounts: "memory=20", want: "Fresh 70.0 memory"},
		},
		"growth that is more than what is held has another cause": {
			{at: 1, what: "reserve", amounts: "cpu=1", want: "Fresh 50.0 cpu"},
			{at: 30, what: "report", amounts: "cpu=7", want: "Fresh 70.0 cpu"},
			{at: 31, what: "reserve", amounts: "cpu=1", want: "Fresh 80.0 cpu"},
		},
		"what a report has absorbed isn't released again": {
			{at: 1, what: "reserve", amounts: "cpu=2", want: "Fresh 60.0 cpu"},
			{at: 30, what: "report", amounts: "cpu=5", want: "Fresh 60.0 cpu"},
			{at: 31, what: "release", amounts: "cpu=2", made: 1, want: "Fresh 50.0 cpu"},
		},
		"what has ended by time isn't released again": {
			{at: 1, what: "reserve", amounts: "cpu=2", want: "Fresh 60.0 cpu"},
			{at: 40, what: "reserve", amounts: "cpu=3", want: "Fresh 90.0 cpu"},
			{at: 70, what: "release", amounts: "cpu=2", made: 1, want: "Fresh 70.0 cpu"},
		},
		"a resource that the report doesn't have is no pressure": {
			{at: 1, what: "reserve", amounts: "nvidia.com/gpu=8", want: "Fresh 40.0 cpu"},
		},
	}
	for name, events := range tests {
		t.Run(name, func(t *testing.T) {
			ix := newIndex()
			observe(t, ix, 1, noon, "cpu=4")
			for i, e := range events {
				now := at(e.at)
				switch e.what {
				case "reserve":
					ix.Reserve(capacity.Reservation{Cell: "a", Amounts: amounts(t, e.amounts), At: now}, now)
				case "release":
					ix.Release(capacity.Reservation{Cell: "a", Amounts: amounts(t, e.amounts), At: at(e.made)}, now)
				case "report":
					observe(t, ix, int64(i)+2, now, e.amounts)
				}
				if got := shown(t, ix, "a", now); got != e.want {
					t.Errorf("after %v s: got %s, want %s", e.at, got, e.want)
				}
			}
		})
	}
}

// A report that was taken before a reservation can't show its pods, whatever
// grew in it, however late it comes and whatever the cell's clock says.
func TestAReportOfBeforeAbsorbsNothing(t *testing.T) {
	reserved := at(30.3)
	for name, report := range map[string]struct{ taken, received time.Time }{
		"that comes late":               {at(20), at(31)},
		"of less than a second before":  {at(30.2), at(31)},
		"by a clock that is ahead":      {at(60), reserved},
		"by a clock that is far behind": {at(-50), at(32)},
	} {
		t.Run(name, func(t *testing.T) {
			ix := newIndex()
			observe(t, ix, 1, noon, "cpu=4")
			ix.Reserve(capacity.Reservation{Cell: "a", Amounts: amounts(t, "cpu=2"), At: reserved}, reserved)
			if _, refused := ix.Observe("a", parse(t, spec(t, 2, report.taken, "cpu=6")), report.received); refused != nil {
				t.Fatal(refused)
			}
			if got := shown(t, ix, "a", report.received); got != "Fresh 80.0 cpu" {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestReservationsOfPeers(t *testing.T) {
	tests := map[string]struct {
		cell string
		made time.Time
		now  time.Time
		want string
	}{
		"counts from when the peer made it":          {"a", at(-59), at(0.9), "Fresh 60.0 cpu"},
		"ends when it ends at the peer":              {"a", at(-59), at(1), "Fresh 40.0 cpu"},
		"comes too late to count":                    {"a", at(-60), noon, "Fresh 40.0 cpu"},
		"of a clock that is ahead lasts no longer":   {"a", at(600), at(60), "Fresh 40.0 cpu"},
		"of a clock that is ahead lasts its time":    {"a", at(600), at(59), "Fresh 60.0 cpu"},
		"about a cell that isn't registered is lost": {"x", noon, noon, "Fresh 40.0 cpu"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ix := newIndex()
			observe(t, ix, 1, noon, "cpu=4")
			r := capacity.Reservation{Cell: test.cell, Amounts: amounts(t, "cpu=2"), At: test.made}
			ix.Reserve(r, noon)
			if got := shown(t, ix, "a", test.now); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			ix.Release(r, test.now)
			if got := shown(t, ix, "a", test.now); test.made.Before(at(1)) && got != "Fresh 40.0 cpu" {
				t.Errorf("after the release: got %s", got)
			}
		})
	}
}

func TestAReservationOfAFastPeerEndsWithItsPods(t *testing.T) {
	ix := newIndex()
	observe(t, ix, 1, noon, "cpu=4")
	ix.Reserve(capacity.Reservation{Cell: "a", Amounts: amounts(t, "cpu=2"), At: at(600)}, at(1))
	observe(t, ix, 2, at(30), "cpu=6")
	if got := shown(t, ix, "a", at(30)); got != "Fresh 60.0 cpu" {
		t.Errorf("got %s", got)
	}
}

func TestReleaseLeavesTheReservationAsItIs(t *testing.T) {
	ix := newIndex()
	observe(t, ix, 1, noon, "cpu=4")
	r := capacity.Reservation{Cell: "a", Amounts: amounts(t, "cpu=2 pods=3"), At: noon}
	ix.Reserve(r, noon)
	ix.Release(r, noon)
	if diff := cmp.Diff(amounts(t, "cpu=2 pods=3"), r.Amounts); diff != "" {
		t.Error(diff)
	}
}
