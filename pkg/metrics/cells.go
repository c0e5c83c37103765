package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Cell is what the metrics tell of a registered cell.
type Cell struct {
	Name string
	// State is its spec.state.
	State string
	// Health says what its last report is worth.
	Health string
	// Reported says that it has reported, and ReportAge how long ago.
	Reported  bool
	ReportAge time.Duration
	// Conditions are those of its row, and whether each is True.
	Conditions map[string]bool
}

// Cells returns every registered cell. It's called when the metrics are scraped:
// a number that somebody had to keep up would look well when that somebody
// stands still.
type Cells func() []Cell

var _ prometheus.Collector = Cells(nil)

var (
	reportAge = prometheus.NewDesc(Namespace+"_cell_report_age_seconds",
		"Seconds since the hub received the cell's last report. From the staleness window on, the cell takes no placement.",
		[]string{"cell"}, nil)
	condition = prometheus.NewDesc(Namespace+"_cell_condition",
		"Whether a condition of the cell's row is True (1) or not (0).",
		[]string{"cell", "condition"}, nil)
	states = prometheus.NewDesc(Namespace+"_cells",
		"Registered cells by spec.state and by what their last report is worth.",
		[]string{"state", "health"}, nil)
)

// Describe sends the three metrics that there are.
func (Cells) Describe(ch chan<- *prometheus.Desc) {
	ch <- reportAge
	ch <- condition
	ch <- states
}

// Collect sends them for the cells of now. A cell that never reported has no age.
func (c Cells) Collect(ch chan<- prometheus.Metric) {
	type kind struct{ state, health string }
	count := map[kind]int{}
	for _, cell := range c() {
		count[kind{cell.State, cell.Health}]++
		if cell.Reported {
			ch <- prometheus.MustNewConstMetric(reportAge, prometheus.GaugeValue, cell.ReportAge.Seconds(), cell.Name)
		}
		for name, holds := range cell.Conditions {
			ch <- prometheus.MustNewConstMetric(condition, prometheus.GaugeValue, number(holds), cell.Name, name)
		}
	}
	for k, n := range count {
		ch <- prometheus.MustNewConstMetric(states, prometheus.GaugeValue, float64(n), k.state, k.health)
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
