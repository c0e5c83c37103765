package revoker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// result is what became of one attempt to end a credential. The set is closed;
// its words are the label of the metric.
type result string

const (
	// ended: the Secret was deleted.
	ended result = "ended"
	// gone: someone else had deleted it, such as another replica.
	gone result = "gone"
	// failed: it couldn't be deleted, and will be tried again.
	failed result = "failed"
)

// metrics are the revoker's. What they say of a namespace is found out when
// they are asked for.
type metrics struct {
	attempts                   *prometheus.CounterVec
	pending, overdue, promised *prometheus.Desc
}

func newMetrics() metrics {
	m := metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cellcast_agent_revocations_total",
			Help: "Attempts to end a revocable credential whose time was over, by result: ended, gone (another replica or the hub was faster), failed (tried again).",
		}, []string{"result"}),
		pending: prometheus.NewDesc("cellcast_agent_revocations_pending",
			"Revocable credentials of the namespace that aren't ended yet.", []string{"namespace"}, nil),
		overdue: prometheus.NewDesc("cellcast_agent_revocations_oldest_overdue_seconds",
			"For how long the oldest credential of the namespace should have been ended, zero where none should.", []string{"namespace"}, nil),
		promised: prometheus.NewDesc("cellcast_agent_revocations_promised",
			"1 while this replica can end credentials in the namespace and they aren't too many, so that a report of it names the namespace; otherwise 0, and the hub issues no revocable credential there.", []string{"namespace"}, nil),
	}
	for _, r := range []result{ended, gone, failed} {
		m.attempts.WithLabelValues(string(r))
	}
	return m
}

func (m metrics) count(r result) { m.attempts.WithLabelValues(string(r)).Inc() }

// Describe is that of prometheus.Collector.
func (r *Revoker) Describe(out chan<- *prometheus.Desc) {
	r.metrics.attempts.Describe(out)
	out <- r.metrics.pending
	out <- r.metrics.overdue
	out <- r.metrics.promised
}

// Collect is that of prometheus.Collector.
func (r *Revoker) Collect(out chan<- prometheus.Metric) {
	r.metrics.attempts.Collect(out)
	now := time.Now()
	for _, ns := range r.namespaces {
		gauge := func(desc *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, ns.name)
		}
		gauge(r.metrics.pending, float64(ns.count()))
		gauge(r.metrics.overdue, ns.overdue(now).Seconds())
		promised := 0.0
		if ns.promised(now) {
			promised = 1
		}
		gauge(r.metrics.promised, promised)
	}
}
