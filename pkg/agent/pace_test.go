package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPace(t *testing.T) {
	const (
		least = 0.0
		most  = 1.0 // never drawn, but what the range ends at
	)
	type step struct {
		outcome outcome
		advised time.Duration
	}
	failures := func(n int) []step {
		steps := make([]step, n)
		for i := range steps {
			steps[i] = step{failed, 0}
		}
		return steps
	}
	for name, test := range map[string]struct {
		interval time.Duration
		steps    []step
		least    []time.Duration
		most     []time.Duration
	}{
		"an accepted report is followed by the next a heartbeat later, give or take a tenth": {
			30 * time.Second, []step{{accepted, 0}},
			[]time.Duration{27 * time.Second}, []time.Duration{33 * time.Second},
		},
		"a refusal keeps the heartbeat, whatever it advises": {
			30 * time.Second, []step{{refused, 5 * time.Second}},
			[]time.Duration{27 * time.Second}, []time.Duration{33 * time.Second},
		},
		"failures back off from one second to thirty": {
			30 * time.Second, failures(7),
			[]time.Duration{1e9, 2e9, 4e9, 8e9, 15e9, 15e9, 15e9},
			[]time.Duration{2e9, 4e9, 8e9, 16e9, 30e9, 30e9, 30e9},
		},
		"a view that is too old backs off alike": {
			30 * time.Second, []step{{withheld, 0}, {failed, 0}},
			[]time.Duration{1e9, 2e9}, []time.Duration{2e9, 4e9},
		},
		"an accepted report starts the backoff anew": {
			30 * time.Second, []step{{failed, 0}, {failed, 0}, {accepted, 0}, {failed, 0}},
			[]time.Duration{1e9, 2e9, 27e9, 1e9}, []time.Duration{2e9, 4e9, 33e9, 2e9},
		},
		"what the hub advises is heeded, and spread": {
			30 * time.Second, []step{{failed, 10 * time.Second}},
			[]time.Duration{10e9}, []time.Duration{11e9},
		},
		"advice that is shorter than the backoff changes nothing": {
			30 * time.Second, []step{{failed, 0}, {failed, 0}, {failed, time.Second}},
			[]time.Duration{1e9, 2e9, 4e9}, []time.Duration{2e9, 4e9, 8e9},
		},
		"advice is heeded for thirty seconds at most": {
			30 * time.Second, []step{{failed, time.Hour}},
			[]time.Duration{30e9}, []time.Duration{33e9},
		},
		"the backoff never exceeds a short heartbeat": {
			2 * time.Second, failures(3),
			[]time.Duration{1e9, 1e9, 1e9}, []time.Duration{2e9, 2e9, 2e9},
		},
		"a failure with a long heartbeat is retried long before it": {
			10 * time.Minute, failures(6),
			[]time.Duration{1e9, 2e9, 4e9, 8e9, 15e9, 15e9},
			[]time.Duration{2e9, 4e9, 8e9, 16e9, 30e9, 30e9},
		},
	} {
		t.Run(name, func(t *testing.T) {
			walk := func(drawn float64) (waits []time.Duration) {
				p := pace{interval: test.interval, random: func() float64 { return drawn }}
				for _, s := range test.steps {
					waits = append(waits, p.next(s.outcome, s.advised))
				}
				return waits
			}
			if diff := cmp.Diff(test.least, walk(least)); diff != "" {
				t.Errorf("shortest waits (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.most, walk(most)); diff != "" {
				t.Errorf("longest waits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPaceAfterManyFailures(t *testing.T) {
	p := pace{interval: time.Hour, random: func() float64 { return 1 }}
	var last time.Duration
	for range 100 {
		last = p.next(failed, 0)
	}
	if last != 30*time.Second {
		t.Errorf("the hundredth wait is %s, want 30s", last)
	}
}
