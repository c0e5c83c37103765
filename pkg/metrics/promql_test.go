package metrics_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is read of PromQL here is what the alerts and the dashboard use of it:
// selectors of cellcast's metrics with their matchers, and the label lists of
// by, on and ignoring. Parsing all of it would take the whole of Prometheus.
var (
	selector = regexp.MustCompile(`(cellcast_[a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(by|on|ignoring|without) \(([^)]*)\)`)
	shown    = regexp.MustCompile(`\{\{ ?(?:\$labels\.)?([a-z_]+) ?\}\}`)
	series   = []string{"_bucket", "_sum", "_count"}
	scraped  = []string{"instance", "pod", "namespace", "job"} // labels of every scrape
)

type match struct{ label, value string }

type selection struct {
	// metric is the family, and name the series of it that is asked for.
	metric, name string
	matches      []match
}

// selectors are those of an expression. Matchers that can't be read are kept as
// one without a label, which no metric has.
func selectors(expr string) []selection {
	var all []selection
	for _, found := range selector.FindAllStringSubmatch(expr, -1) {
		s := selection{metric: found[1], name: found[1]}
		for _, suffix := range series {
			s.metric = strings.TrimSuffix(s.metric, suffix)
		}
		inside := strings.Trim(found[2], "{}")
		for _, m := range matcher.FindAllStringSubmatch(inside, -1) {
			values := []string{m[3]}
			if strings.HasSuffix(m[2], "~") {
				values = strings.Split(m[3], "|")
			}
			for _, value := range values {
				s.matches = append(s.matches, match{m[1], value})
			}
		}
		if rest := strings.Trim(matcher.ReplaceAllString(inside, ""), ", "); rest != "" {
			s.matches = append(s.matches, match{"", rest})
		}
		all = append(all, s)
	}
	return all
}

// check says what a query asks for that there isn't.
func check(q query, known map[string]metric) error {
	words := closed()
	asked := selectors(q.expr)
	if len(asked) == 0 {
		return fmt.Errorf("no metric of cellcast's")
	}
	common := func(label string) error {
		for _, s := range asked {
			m := known[s.metric]
			if !slices.Contains(m.labels, label) && !slices.Contains(scraped, label) && (label != "le" || m.kind != "histogram") {
				return fmt.Errorf("%s has no label %s", s.metric, label)
			}
		}
		return nil
	}
	for _, s := range asked {
		m, ok := known[s.metric]
		switch {
		case !ok:
			return fmt.Errorf("there is no metric %s", s.metric)
		case (m.kind == "histogram") != (s.name != s.metric):
			return fmt.Errorf("%s is a %s", s.name, m.kind)
		}
		for _, got := range s.matches {
			if !slices.Contains(m.labels, got.label) {
				return fmt.Errorf("%s has no label %q", s.metric, got.label)
			}
			if set := words[got.label]; set != nil && !slices.Contains(set, got.value) {
				return fmt.Errorf("%s never is %q", got.label, got.value)
			}
		}
	}
	var kept []string
	for _, found := range grouping.FindAllStringSubmatch(q.expr, -1) {
		for _, label := range names(found[2]) {
			if err := common(label); err != nil {
				return err
			}
			kept = append(kept, label)
		}
	}
	aggregated := strings.Contains(q.expr, "sum") || strings.Contains(q.expr, "min") || strings.Contains(q.expr, "max")
	for _, found := range shown.FindAllStringSubmatch(q.legend, -1) {
		if aggregated && !slices.Contains(kept, found[1]) {
			return fmt.Errorf("it shows the label %s, which the aggregation dropped", found[1])
		}
		if err := common(found[1]); err != nil {
			return err
		}
	}
	return nil
}

func TestAQueryForWhatThereIsntIsFound(t *testing.T) {
	known := map[string]metric{
		"cellcast_a_total":            {"counter", []string{"cell", "outcome"}},
		"cellcast_b":                  {"gauge", []string{"cell"}},
		"cellcast_c_duration_seconds": {"histogram", []string{"cell"}},
	}
	for sentence, tt := range map[string]struct{ expr, legend, want string }{
		"all is well":                    {`sum by (cell) (rate(cellcast_a_total{outcome=~"refused|failed", cell!=""}[5m])) / on (cell) cellcast_b`, "{{cell}} {{ $labels.cell }} {{ $value }}", ""},
		"a histogram":                    {`histogram_quantile(0.9, sum by (cell, le) (rate(cellcast_c_duration_seconds_bucket[5m])))`, "{{cell}}", ""},
		"a metric that isn't there":      {`cellcast_gone_total`, "", "there is no metric cellcast_gone_total"},
		"no metric at all":               {`up`, "", "no metric of cellcast's"},
		"a label that isn't there":       {`cellcast_b{state="x"}`, "", `cellcast_b has no label "state"`},
		"a word that isn't in the set":   {`cellcast_a_total{outcome=~"refused|denied"}`, "", `outcome never is "denied"`},
		"a matcher that can't be read":   {`cellcast_b{cell='x'}`, "", `cellcast_b has no label ""`},
		"grouping by what isn't there":   {`sum by (policy) (cellcast_b)`, "", "cellcast_b has no label policy"},
		"joining by what one side lacks": {`cellcast_a_total / on (outcome) cellcast_b`, "", "cellcast_b has no label outcome"},
		"buckets of what has none":       {`sum by (le) (cellcast_b)`, "", "cellcast_b has no label le"},
		"a histogram without its series": {`cellcast_c_duration_seconds`, "", "cellcast_c_duration_seconds is a histogram"},
		"showing what isn't there":       {`cellcast_b`, "{{policy}}", "cellcast_b has no label policy"},
		"showing what was summed away":   {`sum(cellcast_b)`, "{{cell}}", "it shows the label cell, which the aggregation dropped"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if err := check(query{expr: tt.expr, legend: tt.legend}, known); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
