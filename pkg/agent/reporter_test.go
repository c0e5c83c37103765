package agent

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/agent/commitment"
)

// newReporter returns a reporter of the cell "oslo" whose waits are the middle
// of their ranges: 30 s between heartbeats; 1.5, 3, 6, 12, 22.5 s after
// failures.
func newReporter(hub door, total func(time.Time) (commitment.Total, error)) *reporter {
	return &reporter{
		cell:      "oslo",
		hub:       hub,
		total:     total,
		revocable: func(time.Time) []string { return nil },
		pace:      pace{interval: 30 * time.Second, random: func() float64 { return 0.5 }},
		metrics:   newMetrics(),
	}
}

func oneNode(time.Time) (commitment.Total, error) {
	return commitment.Total{
		Nodes:       1,
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4")},
		Requested:   corev1.ResourceList{"cpu": resource.MustParse("1")},
	}, nil
}

// start runs the reporter until the test ends.
func start(t *testing.T, r *reporter) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// after returns how long after the first attempt each of the others was.
func after(attempts []time.Time) (gaps []string) {
	for _, at := range attempts {
		gaps = append(gaps, at.Sub(attempts[0]).String())
	}
	return gaps
}

func TestReporterReportsAtOnceAndWithEachHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		hub := &fakeHub{cell: "oslo"}
		start(t, newReporter(hub, oneNode))
		time.Sleep(time.Minute)
		synctest.Wait()

		if diff := cmp.Diff([]string{"0s", "30s", "1m0s"}, after(hub.attempted())); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		want := v1alpha1.CellCapacity{
			ObjectMeta: metav1.ObjectMeta{Name: "oslo"},
			Spec: v1alpha1.CellCapacitySpec{
				Sequence:    began.UnixNano(),
				ObservedAt:  metav1.NewMicroTime(began),
				Nodes:       1,
				Allocatable: v1alpha1.ResourceList{"cpu": resource.MustParse("4")},
				Requested:   v1alpha1.ResourceList{"cpu": resource.MustParse("1")},
			},
		}
		if diff := cmp.Diff(want, hub.taken()[0]); diff != "" {
			t.Errorf("first report (-want +got):\n%s", diff)
		}
	})
}

func TestReporterCountsAnewForEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{cell: "oslo"}
		hub.set(errors.New("connection refused"))
		counted := 0
		start(t, newReporter(hub, func(time.Time) (commitment.Total, error) {
			counted++
			return commitment.Total{Nodes: int32(counted)}, nil
		}))
		time.Sleep(4 * time.Second) // attempts at 0 s and 1.5 s fail
		hub.set(nil)
		time.Sleep(time.Second) // the third is at 4.5 s
		synctest.Wait()

		reports := hub.taken()
		if len(reports) != 1 || reports[0].Spec.Nodes != 3 {
			t.Fatalf("the hub took %v, want only the third count", reports)
		}
		if age := time.Since(reports[0].Spec.ObservedAt.Time); age != 500*time.Millisecond {
			t.Errorf("the report was observed %s ago, want 500ms", age)
		}
	})
}

func TestReporterBacksOffAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{cell: "oslo"}
		hub.set(answer(http.StatusServiceUnavailable, "no endpoints", 0))
		start(t, newReporter(hub, oneNode))
		time.Sleep(50 * time.Second)
		hub.set(nil)
		time.Sleep(50 * time.Second)
		synctest.Wait()

		want := []string{"0s", "1.5s", "4.5s", "10.5s", "22.5s", "45s", "1m7.5s", "1m37.5s"}
		if diff := cmp.Diff(want, after(hub.attempted())); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if got := len(hub.taken()); got != 2 {
			t.Errorf("the hub took %d reports, want 2", got)
		}
	})
}

func TestReporterWaitsAsLongAsTheHubAdvises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{cell: "oslo"}
		hub.set(answer(http.StatusTooManyRequests, "slow down", 20))
		start(t, newReporter(hub, oneNode))
		time.Sleep(40 * time.Second)
		synctest.Wait()

		if diff := cmp.Diff([]string{"0s", "21s"}, after(hub.attempted())); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

func TestReporterKeepsTheHeartbeatWhenItIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{cell: "bergen"}
		r := newReporter(hub, oneNode)
		start(t, r)
		time.Sleep(90 * time.Second)
		synctest.Wait()

		if diff := cmp.Diff([]string{"0s", "30s", "1m0s", "1m30s"}, after(hub.attempted())); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

func TestReporterWithholdsWhatIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{cell: "oslo"}
		var blind atomic.Bool
		blind.Store(true)
		start(t, newReporter(hub, func(now time.Time) (commitment.Total, error) {
			if blind.Load() {
				return commitment.Total{}, blindError{time.Minute}
			}
			return oneNode(now)
		}))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := hub.attempted(); len(got) != 0 {
			t.Fatalf("the hub was asked %d times by a blind reporter", len(got))
		}
		blind.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := hub.taken(); len(got) != 1 {
			t.Errorf("the hub took %d reports once the view was back, want 1", len(got))
		}
	})
}

func TestReporterSequenceRisesWhenTheClockIsSetBack(t *testing.T) {
	hub := &fakeHub{cell: "oslo"}
	r := newReporter(hub, oneNode)
	now := time.Unix(1_700_000_000, 0)
	for _, at := range []time.Time{now, now.Add(-time.Hour), now, now.Add(time.Second)} {
		if err := r.attempt(t.Context(), at); err != nil {
			t.Fatalf("attempt at %s: %v", at, err)
		}
	}
	var got []int64
	for _, report := range hub.taken() {
		got = append(got, report.Spec.Sequence)
	}
	want := []int64{1_700_000_000e9, 1_700_000_000e9 + 1, 1_700_000_000e9 + 2, 1_700_000_001e9}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sequences (-want +got):\n%s", diff)
	}
}

func TestReporterCountsItsOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &fakeHub{cell: "oslo"}
		r := newReporter(hub, oneNode)
		for _, trouble := range []error{nil, answer(http.StatusBadRequest, "", 0), nil, errors.New("no route")} {
			time.Sleep(time.Second)
			hub.set(trouble)
			r.heartbeat(t.Context())
		}
		want := `
# HELP cellcast_agent_last_success_timestamp_seconds When the hub last accepted a report of this replica, in seconds since 1970. Zero on a replica that doesn't hold the lease.
# TYPE cellcast_agent_last_success_timestamp_seconds gauge
cellcast_agent_last_success_timestamp_seconds 9.46684803e+08
# HELP cellcast_agent_reports_total Attempts to report the cell's capacity, by outcome: accepted, refused (the hub answered no), failed (no answer, or one that may clear), withheld (the agent's view of the cell is too old).
# TYPE cellcast_agent_reports_total counter
cellcast_agent_reports_total{outcome="accepted"} 2
cellcast_agent_reports_total{outcome="failed"} 1
cellcast_agent_reports_total{outcome="refused"} 1
cellcast_agent_reports_total{outcome="withheld"} 0
`
		if err := testutil.GatherAndCompare(r.metrics.registry, strings.NewReader(want),
			"cellcast_agent_last_success_timestamp_seconds", "cellcast_agent_reports_total"); err != nil {
			t.Error(err)
		}
	})
}

func TestReporterStopsWithoutCountingWhatItBrokeOff(t *testing.T) {
	hub := &fakeHub{cell: "oslo"}
	r := newReporter(hub, oneNode)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.heartbeat(ctx)
	if got := testutil.ToFloat64(r.metrics.reports.WithLabelValues("failed")); got != 0 {
		t.Errorf("an attempt that a shutdown broke off counts as %v failures", got)
	}
}
