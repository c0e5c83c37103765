package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Report is when a cell last reported.
type Report struct {
	Cell string
	// Age is since the hub received it.
	Age time.Duration
}

// Reports is the age of each cell's last report, read when it's scraped: a
// number that somebody had to keep up would look well when that somebody stands
// still. A cell that never reported has no series.
type Reports func() []Report

var _ prometheus.Collector = Reports(nil)

var reportAge = prometheus.NewDesc(Namespace+"_cell_report_age_seconds",
	"Seconds since the hub received the cell's last report. From the staleness window on, the cell takes no placement.",
	[]string{"cell"}, nil)

// Describe sends the one metric that there is.
func (Reports) Describe(ch chan<- *prometheus.Desc) { ch <- reportAge }

// Collect sends the age of each report.
func (r Reports) Collect(ch chan<- prometheus.Metric) {
	for _, report := range r() {
		ch <- prometheus.MustNewConstMetric(reportAge, prometheus.GaugeValue, report.Age.Seconds(), report.Cell)
	}
}
