package peers

import "github.com/prometheus/client_golang/prometheus"

// Kind is what a message says.
type Kind string

// The kinds. There are no others.
const (
	KindReport      Kind = "report"
	KindReservation Kind = "reservation"
	KindRelease     Kind = "release"
)

type direction string

const (
	sent     direction = "sent"
	received direction = "received"
)

type result string

const (
	// ok: the peer took it, or this replica did.
	ok result = "ok"
	// dropped: it never left, because the queue was full or it was too large.
	dropped result = "dropped"
	// failed: it was sent and no answer came, so its fate is unclear.
	failed result = "failed"
	// refused: this replica didn't take it: a replay, or a cell that it doesn't
	// know.
	refused result = "refused"
)

// Metrics count what goes between the replicas.
type Metrics struct {
	messages *prometheus.CounterVec
	peers    prometheus.Gauge
}

var _ prometheus.Collector = (*Metrics)(nil)

// NewMetrics returns metrics that nobody has registered yet.
func NewMetrics() *Metrics {
	return &Metrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cellcast_relay_messages_total",
			Help: "Messages between replicas of the hub by direction (sent, received), kind (report, reservation, release) and result (ok, dropped, failed, refused).",
		}, []string{"direction", "kind", "result"}),
		peers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "cellcast_relay_peers",
			Help: "Other replicas of the hub that this one hands its reports and reservations to.",
		}),
	}
}

// Describe sends the descriptions.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.messages.Describe(ch)
	m.peers.Describe(ch)
}

// Collect sends the values.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.messages.Collect(ch)
	m.peers.Collect(ch)
}

func (m *Metrics) count(d direction, k Kind, r result, n int) {
	if n > 0 {
		m.messages.WithLabelValues(string(d), string(k), string(r)).Add(float64(n))
	}
}
