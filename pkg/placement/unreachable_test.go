package placement

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

func TestAnUnreachableCellIsChosenLast(t *testing.T) {
	for sentence, tt := range map[string]struct {
		unreachable []string
		strategy    registry.Strategy
		resources   string
		want        string // the cell and the confidence
	}{
		"the emptiest, where all can be reached":       {nil, registry.StrategyLeastLoaded, "", "a degraded"},
		"another, where the emptiest can't":            {[]string{"a"}, registry.StrategyLeastLoaded, "", "b degraded"},
		"the last that can be":                         {[]string{"a", "b"}, registry.StrategyLeastLoaded, "", "c degraded"},
		"the emptiest again, where none can be":        {[]string{"a", "b", "c"}, registry.StrategyLeastLoaded, "", "a degraded"},
		"the unreachable one, where it alone has room": {[]string{"a"}, registry.StrategyLeastLoaded, "cpu=85", "a degraded"},
		"another in turn":                              {[]string{"a"}, registry.StrategyRoundRobin, "", "b degraded"},
		"a name that isn't registered changes nothing": {[]string{"zz"}, registry.StrategyLeastLoaded, "", "a degraded"},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t)
			for name, used := range map[string]string{"a": "cpu=10", "b": "cpu=20", "c": "cpu=30"} {
				w.cell(name, "prod", registry.StateLive)
				w.report(name, noon, hundred, used)
			}
			w.cell("silent", "prod", registry.StateLive)
			d, refused := w.engine.Decide(Request{Workload: "shop/cart", Resources: amounts(t, tt.resources), Unreachable: tt.unreachable},
				permission(t, "prod", tt.strategy, false), noon)
			if refused != nil {
				t.Fatal(refused)
			}
			if got := fmt.Sprintf("%s %s", d.Cell.Name, d.Confidence); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Sticky comes back to where it was once that can be reached again.
func TestStickyLeavesAnUnreachableCellAndComesBack(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.cell(name, "prod", registry.StateLive)
		w.report(name, noon, hundred, "")
	}
	p := permission(t, "prod", registry.StrategySticky, false)
	choose := func(unreachable ...string) string {
		d, refused := w.engine.Decide(Request{Workload: "shop/cart", Unreachable: unreachable}, p, noon)
		if refused != nil {
			t.Fatal(refused)
		}
		return d.Cell.Name
	}
	home := choose()
	if away := choose(home); away == home {
		t.Errorf("it stays on %s, which can't be reached", home)
	}
	if back := choose(); back != home {
		t.Errorf("it's on %s and not back on %s", back, home)
	}
}

func TestTheTraceSaysWhyAnUnreachableCellWasNotChosen(t *testing.T) {
	w := newWorld(t)
	for name, used := range map[string]string{"a": "cpu=10", "b": "cpu=20"} {
		w.cell(name, "prod", registry.StateLive)
		w.report(name, noon, hundred, used)
	}
	w.cell("d", "prod", registry.StateDraining)
	d, refused := w.engine.Decide(Request{Workload: "shop/cart", Explain: true, Unreachable: []string{"a", "d"}},
		permission(t, "prod", registry.StrategyLeastLoaded, false), noon)
	if refused != nil {
		t.Fatal(refused)
	}
	if d.Trace.HasAlternative() {
		t.Error("a cell that can't be reached counts as an alternative")
	}
	var got []string
	for _, c := range d.Trace.All() {
		got = append(got, fmt.Sprintf("%s %s %s %s", c.Cell, c.Verdict, c.Stage, c.Reason))
	}
	want := []string{"a Eligible  Unreachable", "b Chosen  ", "d Excluded state Draining"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the trace differs (-want +got):\n%s", diff)
	}
}

func TestHasAlternative(t *testing.T) {
	w := newWorld(t)
	w.cell("a", "prod", registry.StateLive)
	w.report("a", noon, hundred, "cpu=10")
	ask := func() bool {
		d, refused := w.engine.Decide(Request{Workload: "shop/cart", Explain: true}, permission(t, "prod", registry.StrategyLeastLoaded, false), noon)
		if refused != nil {
			t.Fatal(refused)
		}
		return d.Trace.HasAlternative()
	}
	w.cell("dev", "dev", registry.StateLive)
	w.report("dev", noon, hundred, "")
	if ask() {
		t.Error("a cell out of reach counts as an alternative")
	}
	w.cell("b", "prod", registry.StateLive)
	w.report("b", noon, hundred, "cpu=90")
	if !ask() {
		t.Error("another eligible cell doesn't count")
	}
	var none *Trace
	if none.HasAlternative() {
		t.Error("no trace has an alternative")
	}
}
