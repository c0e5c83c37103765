package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/yaml"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/events"
	"cellcast.io/cellcast/pkg/ingest"
	"cellcast.io/cellcast/pkg/metrics"
	"cellcast.io/cellcast/pkg/peers"
	"cellcast.io/cellcast/pkg/refusal"
)

// unwatched are the metrics that neither an alert nor the dashboard needs, and
// why. It's empty, and may stay so.
var unwatched = map[string]string{}

// hub is the registry of a hub that has done a little of everything.
func hub(t *testing.T) (*prometheus.Registry, *metrics.Records) {
	t.Helper()
	registry := prometheus.NewRegistry()
	records := metrics.NewRecords(registry)
	metrics.NewReloads(registry, time.Now)
	registry.MustRegister(collectors()...)
	return registry, records
}

func collectors() []prometheus.Collector {
	return []prometheus.Collector{
		metrics.Cells(func() []metrics.Cell {
			return []metrics.Cell{{Name: "a", State: "LIVE", Health: "Fresh", Reported: true, Conditions: map[string]bool{"TrustEstablished": true}}}
		}),
		metrics.NewWarm(func() bool { return true }),
		metrics.NewLost(func() map[audit.Event]uint64 { return map[audit.Event]uint64{audit.EventMint: 0} }),
		metrics.NewEvents((&events.Events{}).Results),
		peers.NewMetrics(),
	}
}

// metric is what there is to know of one.
type metric struct {
	kind   string
	labels []string
}

var description = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// registered are the metrics of a hub. A metric that has no series yet is in no
// answer of the registry; its description is, and its name says the type.
func registered(t *testing.T) map[string]metric {
	t.Helper()
	described := descriptions{}
	metrics.NewRecords(described)
	metrics.NewReloads(described, time.Now)
	described.MustRegister(collectors()...)

	registry, _ := hub(t)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, family := range families {
		kinds[family.GetName()] = strings.ToLower(family.GetType().String())
	}
	all := map[string]metric{}
	for name, labels := range described {
		kind := kinds[name]
		switch {
		case kind != "":
		case strings.HasSuffix(name, "_total"):
			kind = "counter"
		case strings.HasSuffix(name, "_duration_seconds"):
			kind = "histogram"
		}
		all[name] = metric{kind, labels}
	}
	return all
}

// descriptions is a registry that keeps what metrics say of themselves.
type descriptions map[string][]string

func (d descriptions) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc, 16)
	c.Describe(ch)
	close(ch)
	for desc := range ch {
		match := description.FindStringSubmatch(desc.String())
		if match == nil {
			return fmt.Errorf("can't read %s", desc)
		}
		d[match[1]] = names(match[2])
	}
	return nil
}

func (d descriptions) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := d.Register(c); err != nil {
			panic(err)
		}
	}
}

func (descriptions) Unregister(prometheus.Collector) bool { return false }

// names are the words of a list, sorted.
func names(list string) []string {
	words := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '`' })
	slices.Sort(words)
	return words
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheNamesAreThoseThatPrometheusAdvises(t *testing.T) {
	registry, records := hub(t)
	for _, event := range audit.Events() {
		if err := records.Write(audit.Record{Event: event, Cell: "a", Policy: "p", Reason: "Expired", Confidence: "high"}); err != nil {
			t.Fatal(err)
		}
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestTheDocumentHasEveryMetricAndNoOther(t *testing.T) {
	got := map[string]metric{}
	rows := regexp.MustCompile("(?m)^\\| `(cellcast_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\| ([^|]+) \\| ([^|]+) \\|$")
	for _, m := range rows.FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		got[m[1]] = metric{m[2], names(m[3])}
	}
	if diff := cmp.Diff(registered(t), got, cmp.AllowUnexported(metric{}), cmp.Comparer(slices.Equal[[]string])); diff != "" {
		t.Errorf("docs/metrics.md (-registry +document):\n%s", diff)
	}
}

// rule is an alert.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "artifacts/alerts/cellcast.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	return file.Groups[0].Rules
}

// query is an expression and the texts that show what comes of it.
type query struct{ where, expr, legend string }

// queries are all that alerts, dashboard and document ask.
func queries(t *testing.T) (watching, examples []query) {
	t.Helper()
	for _, r := range alerts(t) {
		watching = append(watching, query{r.Alert, r.Expr, r.Annotations["summary"] + r.Annotations["description"]})
	}
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr   string `json:"expr"`
				Legend string `json:"legendFormat"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, "artifacts/dashboards/cellcast.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			watching = append(watching, query{"panel " + p.Title, target.Expr, target.Legend})
		}
	}
	blocks := regexp.MustCompile(`(?m)(?:^    .*\n)+`).FindAllString(read(t, "docs/metrics.md"), -1)
	for _, text := range blocks {
		if strings.Contains(text, "cellcast_") && !strings.Contains(text, "$ ") {
			examples = append(examples, query{"docs/metrics.md", text, ""})
		}
	}
	if len(watching) < 30 || len(examples) < 2 {
		t.Fatalf("%d queries and %d examples were found", len(watching), len(examples))
	}
	return watching, examples
}

func TestEachQueryAsksForWhatThereIs(t *testing.T) {
	known := registered(t)
	watching, examples := queries(t)
	for _, q := range slices.Concat(watching, examples) {
		if err := check(q, known); err != nil {
			t.Errorf("%s: %v\n%s", q.where, err, q.expr)
		}
	}
}

func TestEachMetricIsWatched(t *testing.T) {
	watching, _ := queries(t)
	watched := map[string]bool{}
	for _, q := range watching {
		for _, s := range selectors(q.expr) {
			watched[s.metric] = true
		}
	}
	for name := range registered(t) {
		switch reason, excused := unwatched[name]; {
		case watched[name] && excused:
			t.Errorf("%s is watched, and said not to be, for %q", name, reason)
		case !watched[name] && !excused:
			t.Errorf("%s is in no alert and not on the dashboard: add it, or say why in unwatched", name)
		}
	}
}

func TestEachAlertIsExplained(t *testing.T) {
	doc := read(t, "docs/metrics.md")
	_, doc, _ = strings.Cut(doc, "\n## The alerts\n")
	explained := map[string]bool{}
	for _, section := range strings.Split(doc, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		explained[name] = true
		if !strings.Contains(text, "\nFirst: ") {
			t.Errorf("docs/metrics.md says of %s no first command", name)
		}
	}
	for _, r := range alerts(t) {
		if !explained[r.Alert] {
			t.Errorf("docs/metrics.md doesn't explain %s", r.Alert)
		}
		delete(explained, r.Alert)
		if want := "docs/metrics.md#" + strings.ToLower(r.Alert); r.Annotations["runbook"] != want {
			t.Errorf("the runbook of %s is %q, want %q", r.Alert, r.Annotations["runbook"], want)
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has severity %q", r.Alert, s)
		}
		if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s says nothing", r.Alert)
		}
	}
	for name := range explained {
		t.Errorf("docs/metrics.md explains %s, which is no alert", name)
	}
}

// A lost record of a flood must not page, and any other must.
func TestTheAlertsTellAFloodFromABrokenTrail(t *testing.T) {
	var byStranger []string
	for _, event := range audit.Events() {
		if event.ByStranger() {
			byStranger = append(byStranger, string(event))
		}
	}
	slices.Sort(byStranger)
	got := map[string]string{}
	for _, r := range alerts(t) {
		if _, matchers, found := strings.Cut(r.Expr, "cellcast_audit_records_lost_total"); found {
			got[r.Alert], _, _ = strings.Cut(r.Labels["severity"]+matchers, "[")
		}
	}
	words := strings.Join(byStranger, "|")
	want := map[string]string{
		"CellcastAuditTrailBroken": fmt.Sprintf("critical{event!~%q}", words),
		"CellcastAuditFlooded":     fmt.Sprintf("warning{event=~%q}", words),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alerts on lost records (-want +got):\n%s", diff)
	}
}

// The example of docs/metrics.md is what comes of the records of the example of
// docs/audit.md.
func TestTheExampleIsWhatTheTrailsExampleCountsTo(t *testing.T) {
	registry, records := hub(t)
	_, text, _ := strings.Cut(read(t, "docs/audit.md"), "\n`trail.jsonl`")
	_, text, _ = strings.Cut(text, "\n\n")
	decoder := json.NewDecoder(strings.NewReader(text)) // reads on where the last record ended
	for range 3 {
		var record audit.Record
		if err := decoder.Decode(&record); err != nil {
			t.Fatal(err)
		}
		if err := records.Write(record); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		if !slices.Contains([]string{"cellcast_placements_total", "cellcast_placement_confidence_total", "cellcast_mints_total"}, family.GetName()) {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, pair := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", pair.GetName(), pair.GetValue()))
			}
			got = append(got, fmt.Sprintf("%s{%s} %v", family.GetName(), strings.Join(labels, ","), m.GetCounter().GetValue()))
		}
	}
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^    (cellcast_[a-z_]+\{.*\} \d+)$`).FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		want = append(want, m[1])
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/metrics.md (-document +metrics):\n%s", diff)
	}
}

// closed are the labels whose values are words of a closed set, and the words.
func closed() map[string][]string {
	words := map[string][]string{
		"dry_run":    {"true", "false"},
		"confidence": {string(cellcastv1alpha1.ConfidenceHigh), string(cellcastv1alpha1.ConfidenceDegraded)},
		"health":     {string(cellcastv1alpha1.CapacityFresh), string(cellcastv1alpha1.CapacityStale), string(cellcastv1alpha1.CapacityUnknown)},
		"state":      {string(registryv1alpha1.StateLive), string(registryv1alpha1.StateDark), string(registryv1alpha1.StateDraining)},
		"condition":  {registryv1alpha1.ConditionAcceptingPlacements, registryv1alpha1.ConditionTrustEstablished, registryv1alpha1.ConditionReporterTrusted},
		"kind":       {string(peers.KindReport), string(peers.KindReservation), string(peers.KindRelease)},
		"direction":  {"sent", "received"},
		"result":     {"ok", "dropped", "failed", "refused", "written", "aggregated"},
		"refusal":    {""},
	}
	for _, e := range audit.Events() {
		words["event"] = append(words["event"], string(e))
	}
	for _, o := range audit.Outcomes() {
		words["outcome"] = append(words["outcome"], string(o))
	}
	for _, m := range refusal.Meanings() {
		words["refusal"] = append(words["refusal"], string(m.Code))
	}
	for _, r := range caller.Reasons() {
		words["reason"] = append(words["reason"], string(r))
	}
	for _, r := range ingest.Reasons() {
		words["reason"] = append(words["reason"], string(r))
	}
	return words
}
