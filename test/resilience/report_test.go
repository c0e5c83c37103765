package resilience

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// during is what became of the runs that began in the window of one event: from
// its beginning to that of the next.
type during struct {
	event            string
	began, succeeded int
	// failed counts the rest by exit code and reason.
	failed map[string]int
	// again are those that asked more than once, and hidden counts the answers that
	// made them, by reason.
	again    int
	hidden   map[string]int
	p50, p99 time.Duration
}

// summarise sorts the outcomes into the windows of the events, which come in the
// order in which they began. The latencies are those of runs that succeeded.
func summarise(events []*event, outcomes []outcome) []during {
	var all []during
	for i, e := range events {
		d := during{event: e.name, failed: map[string]int{}, hidden: map[string]int{}}
		var took []time.Duration
		for _, o := range outcomes {
			if o.began < e.began || i+1 < len(events) && o.began >= events[i+1].began {
				continue
			}
			d.began++
			if len(o.hidden) > 0 {
				d.again++
			}
			for _, reason := range o.hidden {
				d.hidden[reason]++
			}
			if o.exit != 0 {
				d.failed[o.failure()]++
				continue
			}
			d.succeeded++
			took = append(took, o.ended-o.began)
		}
		slices.Sort(took)
		d.p50, d.p99 = quantile(took, 50), quantile(took, 99)
		all = append(all, d)
	}
	return all
}

func (o outcome) failure() string { return fmt.Sprintf("exit %d %s", o.exit, o.reason) }

// quantile is the least of the sorted durations that so many percent of them
// don't exceed; zero where there is none.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// table is a line for each event.
func table(all []during) string {
	var b strings.Builder
	tabs := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, d := range all {
		fmt.Fprintf(tabs, "failures %s:\t%d began\t%d succeeded\tp50 %s\tp99 %s\tfailed: %s\t%d asked again: %s\n", d.event, d.began, d.succeeded,
			d.p50.Round(time.Millisecond), d.p99.Round(time.Millisecond), tally(d.failed), d.again, tally(d.hidden))
	}
	_ = tabs.Flush()
	return b.String()
}

// tally is how often there was what.
func tally(counts map[string]int) string {
	if len(counts) == 0 {
		return "none"
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[what], what))
	}
	return strings.Join(parts, ", ")
}
