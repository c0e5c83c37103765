package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"cellcast.io/cellcast/pkg/audit"
)

// Records counts audit records: what was audited is counted, and nothing else,
// so that the two can't disagree.
type Records struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

var _ audit.Sink = &Records{}

// NewRecords registers the counters of the records.
func NewRecords(registry prometheus.Registerer) *Records {
	r := &Records{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: Namespace,
			Name:      "audit_records_total",
			Help:      "Audit records by event, outcome and the code of the refusal, which is empty unless refused.",
		}, []string{"event", "outcome", "refusal"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: Namespace,
			Name:      "event_duration_seconds",
			Help:      "How long what the audit records speak of took, in seconds.",
			Buckets:   []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"event"}),
	}
	registry.MustRegister(r.total, r.duration)
	return r
}

// Write counts the record.
func (r *Records) Write(record audit.Record) {
	r.total.WithLabelValues(string(record.Event), string(record.Outcome), string(record.Refusal)).Inc()
	r.duration.WithLabelValues(string(record.Event)).Observe(record.DurationMS / 1000)
}

// NewLost counts the audit records that could not be written.
func NewLost(lost func() uint64) prometheus.CounterFunc {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: Namespace,
		Name:      "audit_records_lost_total",
		Help:      "Audit records that could not be written to standard output. Anything above zero is a gap in the trail.",
	}, func() float64 { return float64(lost()) })
}
