package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// NewWarm tells whether this replica has heard enough of the fleet to place.
func NewWarm(warm func() bool) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: Namespace,
		Name:      "replica_warm",
		Help:      "Whether this replica has heard enough of the fleet to place (1), or refuses with PlacementUnavailable (0).",
	}, func() float64 { return number(warm()) })
}

// Reloads tell how the last change of the file of trusted issuers was taken.
type Reloads struct {
	now     func() time.Time
	success prometheus.Gauge
	at      prometheus.Gauge
}

// NewReloads registers the metrics of a file that was just read for the first
// time, with success.
func NewReloads(registry prometheus.Registerer, now func() time.Time) *Reloads {
	r := &Reloads{
		now: now,
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: Namespace, Name: "issuer_config_last_reload_successful",
			Help: "Whether the last change of the file of pipeline issuers was taken over (1), or the one before still holds (0).",
		}),
		at: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: Namespace, Name: "issuer_config_last_reload_success_timestamp_seconds",
			Help: "When the file of pipeline issuers was last taken over, in seconds since 1970.",
		}),
	}
	registry.MustRegister(r.success, r.at)
	r.Observe(nil)
	return r
}

// Observe notes the outcome of an attempt to take over a changed file.
func (r *Reloads) Observe(err error) {
	r.success.Set(number(err == nil))
	if err == nil {
		r.at.Set(float64(r.now().Unix()))
	}
}

// NewEvents counts what became of the Events about cells; ended returns the
// number by result.
func NewEvents(ended func() map[string]uint64) prometheus.Collector { return events(ended) }

type events func() map[string]uint64

var eventsTotal = prometheus.NewDesc(Namespace+"_cluster_events_total",
	"Events on Clusters: written, aggregated by the spam filter, dropped for a full queue, or failed at the hub's API server.",
	[]string{"result"}, nil)

func (events) Describe(ch chan<- *prometheus.Desc) { ch <- eventsTotal }

func (e events) Collect(ch chan<- prometheus.Metric) {
	for result, n := range e() {
		ch <- prometheus.MustNewConstMetric(eventsTotal, prometheus.CounterValue, float64(n), result)
	}
}
