package metrics

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/refusal"
)

func counter(r *prometheus.Registry, name, help string, values map[string]float64) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"kind"})
	for kind, v := range values {
		c.WithLabelValues(kind).Add(v)
	}
	r.MustRegister(c)
}

func TestHandlerJoinsFamiliesOfOneName(t *testing.T) {
	a, b := prometheus.NewRegistry(), prometheus.NewRegistry()
	counter(a, "work_total", "work", map[string]float64{"first": 1, "both": 2})
	counter(b, "work_total", "other words", map[string]float64{"second": 3, "both": 9})
	counter(b, "only_b_total", "b", map[string]float64{"x": 4})

	w := httptest.NewRecorder()
	Handler(a, b).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	got, _ := io.ReadAll(w.Body)

	want := `# HELP only_b_total b
# TYPE only_b_total counter
only_b_total{kind="x"} 4
# HELP work_total work
# TYPE work_total counter
work_total{kind="both"} 2
work_total{kind="first"} 1
work_total{kind="second"} 3
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestRecordsCountsByEventOutcomeAndRefusal(t *testing.T) {
	registry := prometheus.NewRegistry()
	records := NewRecords(registry)
	records.Write(audit.Record{Event: audit.EventPlacement, Outcome: audit.OutcomeRefused, Refusal: refusal.NoPolicy})
	records.Write(audit.Record{Event: audit.EventPlacement, Outcome: audit.OutcomeRefused, Refusal: refusal.NoPolicy})
	records.Write(audit.Record{Event: audit.EventMint, Outcome: audit.OutcomeAllowed})

	want := `# HELP cellcast_audit_records_total Audit records by event, outcome and the code of the refusal, which is empty unless refused.
# TYPE cellcast_audit_records_total counter
cellcast_audit_records_total{event="mint",outcome="allowed",refusal=""} 1
cellcast_audit_records_total{event="placement",outcome="refused",refusal="NoPolicy"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "cellcast_audit_records_total"); err != nil {
		t.Error(err)
	}
}

func TestReportsIsTheAgeOfEachReport(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(Reports(func() []Report {
		return []Report{{Cell: "prod-eu", Age: 1500 * time.Millisecond}, {Cell: "prod-us", Age: 2 * time.Minute}}
	}))
	want := `# HELP cellcast_cell_report_age_seconds Seconds since the hub received the cell's last report. From the staleness window on, the cell takes no placement.
# TYPE cellcast_cell_report_age_seconds gauge
cellcast_cell_report_age_seconds{cell="prod-eu"} 1.5
cellcast_cell_report_age_seconds{cell="prod-us"} 120
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
