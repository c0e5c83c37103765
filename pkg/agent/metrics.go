package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are the agent's own, in a registry of their own.
type metrics struct {
	registry    *prometheus.Registry
	reports     *prometheus.CounterVec
	lastSuccess prometheus.Gauge
}

// newMetrics returns the agent's metrics, with those of its parts.
func newMetrics(parts ...prometheus.Collector) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cellcast_agent_reports_total",
			Help: "Attempts to report the cell's capacity, by outcome: accepted, refused (the hub answered no), failed (no answer, or one that may clear), withheld (the agent's view of the cell is too old).",
		}, []string{"outcome"}),
		lastSuccess: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cellcast_agent_last_success_timestamp_seconds",
			Help: "When the hub last accepted a report of this replica, in seconds since 1970. Zero on a replica that doesn't hold the lease.",
		}),
	}
	for _, o := range outcomes() {
		m.reports.WithLabelValues(string(o))
	}
	m.registry.MustRegister(m.reports, m.lastSuccess,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(parts...)
	return m
}

func (m *metrics) observe(o outcome, now time.Time) {
	m.reports.WithLabelValues(string(o)).Inc()
	if o == accepted {
		m.lastSuccess.Set(float64(now.UnixNano()) / 1e9)
	}
}
