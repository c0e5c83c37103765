package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"cellcast.io/cellcast/pkg/audit"
)

// Records counts audit records: what was audited is counted, and nothing else,
// so that the two can't disagree. No label holds what a caller made up: policies
// and cells are those of rows, and the rest are words of closed sets.
type Records struct {
	total         *prometheus.CounterVec
	placements    *prometheus.CounterVec
	confidence    *prometheus.CounterVec
	placementTime prometheus.Histogram
	mints         *prometheus.CounterVec
	mintTime      *prometheus.HistogramVec
	revocations   *prometheus.CounterVec
	failures      *prometheus.CounterVec
	posts         *prometheus.CounterVec
}

var _ audit.Sink = &Records{}

// A decision takes less than a millisecond, and a mint as long as the cell takes.
var (
	decisionBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
	mintBuckets     = []float64{.0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
)

// NewRecords registers the counters of the records.
func NewRecords(registry prometheus.Registerer) *Records {
	r := &Records{
		total: counters("audit_records_total",
			"Audit records by event, outcome and the code of the refusal, which is empty unless refused.", "event", "outcome", "refusal"),
		placements: counters("placements_total",
			"Decisions on where a workload goes, by the policy that governed, which is empty when none did.", "policy", "dry_run", "outcome", "refusal"),
		confidence: counters("placement_confidence_total",
			"Placements that were answered, by how much was known of the capacity of the permitted cells.", "confidence"),
		placementTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: Namespace, Name: "placement_duration_seconds", Buckets: decisionBuckets,
			Help: "How long deciding took, in seconds, without the mint.",
		}),
		mints: counters("mints_total", "Attempts to get a credential from a cell.", "cell", "outcome", "refusal"),
		mintTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: Namespace, Name: "mint_duration_seconds", Buckets: mintBuckets,
			Help: "How long minting took, in seconds; most of it is the cell's.",
		}, []string{"cell"}),
		revocations: counters("revocations_total", "Attempts of callers to end a credential before its time.", "outcome", "refusal"),
		failures:    counters("authentication_failures_total", "Tokens that were shown and not believed, by the reason.", "reason"),
		posts: counters("ingest_posts_total",
			"Posts of pods to the external listener, by the reason for which they weren't taken, which is empty unless refused.", "outcome", "reason"),
	}
	for _, event := range audit.Events() { // from zero on, so that the first fault is an increase
		r.total.WithLabelValues(string(event), string(audit.OutcomeFailed), "")
	}
	registry.MustRegister(r.total, r.placements, r.confidence, r.placementTime, r.mints, r.mintTime, r.revocations, r.failures, r.posts)
	return r
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: Namespace, Name: name, Help: help}, labels)
}

// anyTarget stands in the label cell for every brought target: owners make those at
// will. No cell can have that name.
const anyTarget = "target:"

// Write counts the record. The error is always nil.
func (r *Records) Write(record audit.Record) error {
	outcome, code := string(record.Outcome), string(record.Refusal)
	seconds := record.DurationMS / 1000
	r.total.WithLabelValues(string(record.Event), outcome, code).Inc()
	switch record.Event {
	case audit.EventPlacement:
		r.placements.WithLabelValues(record.Policy, strconv.FormatBool(record.DryRun), outcome, code).Inc()
		r.placementTime.Observe(seconds)
		if record.Confidence != "" {
			r.confidence.WithLabelValues(record.Confidence).Inc()
		}
	case audit.EventMint:
		if record.DryRun {
			break
		}
		where := record.Cell
		if record.Target != "" {
			where = anyTarget
		}
		r.mints.WithLabelValues(where, outcome, code).Inc()
		r.mintTime.WithLabelValues(where).Observe(seconds)
	case audit.EventRevocation: // the cell is as the caller named it, so it's no label
		r.revocations.WithLabelValues(outcome, code).Inc()
	case audit.EventAuthenticationFailed:
		r.failures.WithLabelValues(record.Reason).Inc()
	case audit.EventArtifact, audit.EventArtifactRefused: // a stranger chose the pod's name, so it's no label
		r.posts.WithLabelValues(outcome, record.Reason).Inc()
	case audit.EventReportRefused, audit.EventAdmissionRefused, audit.EventRowChanged, audit.EventCredentialRead,
		audit.EventProbeRequested, audit.EventProbe: // the total says all
	}
	return nil
}

// NewLost counts the audit records that could not be written; by event, since
// strangers can flood some, and no other is ever lost while the trail works.
func NewLost(byEvent func() map[audit.Event]uint64) prometheus.Collector { return lost(byEvent) }

type lost func() map[audit.Event]uint64

var lostTotal = prometheus.NewDesc(Namespace+"_audit_records_lost_total",
	"Audit records that could not be written to standard output in time, by event. What they would have issued was refused.",
	[]string{"event"}, nil)

func (lost) Describe(ch chan<- *prometheus.Desc) { ch <- lostTotal }

func (l lost) Collect(ch chan<- prometheus.Metric) {
	for event, n := range l() {
		ch <- prometheus.MustNewConstMetric(lostTotal, prometheus.CounterValue, float64(n), string(event))
	}
}
