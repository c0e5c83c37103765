package placement

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// hundred is 100 cores, 100 bytes and 100 pods, so that figures are percent.
const hundred = "cpu=100 memory=100 pods=100"

func TestDecide(t *testing.T) {
	type cell struct {
		name, env string
		state     registry.ClusterState
		// report is what is requested of a hundred each, "none" for a cell
		// without a report, "old" for one with a stale report, "no nodes".
		report string
	}
	live := func(name, report string) cell { return cell{name, "prod", registry.StateLive, report} }
	tests := map[string]struct {
		cells     []cell
		dark      bool
		resources string
		// The policy is LeastLoaded and permits env prod.
		allowDark, noSelector bool
		strategy              registry.Strategy
		want                  string // cell, utilisation and confidence, or the refusal
	}{
		"chooses the cell whose fullest dimension is the least full": {
			cells: []cell{live("a", "cpu=10 memory=80"), live("b", "cpu=70"), live("c", "cpu=75")},
			want:  "b 70.0 cpu high"},
		"counts the request": {
			cells:     []cell{live("a", "cpu=50 memory=10"), live("b", "cpu=10 memory=55")},
			resources: "memory=20",
			want:      "a 50.0 cpu high"},
		"passes over a cell without room": {
			cells:     []cell{live("a", "cpu=10 memory=91"), live("b", "cpu=95")},
			resources: "memory=10",
			want:      "b 95.0 cpu high"},
		"takes a cell that is exactly full afterwards": {
			cells: []cell{live("a", "memory=90")}, resources: "memory=10",
			want: "a 100.0 memory high"},
		"takes a full cell when the request doesn't say what it needs": {
			cells: []cell{live("a", "cpu=120")},
			want:  "a 120.0 cpu high"},
		"takes a cell that is over-committed in what the request doesn't ask for": {
			cells: []cell{live("a", "cpu=120")}, resources: "memory=10",
			want: "a 120.0 cpu high"},
		"never takes a cell that hasn't reported for an empty one": {
			cells: []cell{live("a", "none"), live("b", "cpu=99")},
			want:  "b 99.0 cpu degraded"},
		"never takes a stale cell": {
			cells: []cell{live("a", "old"), live("b", "cpu=99")},
			want:  "b 99.0 cpu degraded"},
		"is sure although cells are draining, dark, empty of nodes or out of reach": {
			cells: []cell{live("a", "cpu=99"), live("d", "no nodes"), {"b", "prod", registry.StateDraining, "none"},
				{"c", "prod", registry.StateDark, "old"}, {"e", "dev", registry.StateLive, "none"}},
			want: "a 99.0 cpu high"},
		"chooses a dark cell for a dark request, not the emptier live one": {
			cells: []cell{live("a", "cpu=1"), {"b", "prod", registry.StateDark, "cpu=90"}},
			dark:  true, allowDark: true,
			want: "b 90.0 cpu high"},
		"finds what the policy permits, however much emptier the rest is": {
			cells: []cell{{"a", "dev", registry.StateLive, "cpu=1"}, live("b", "cpu=90")},
			want:  "b 90.0 cpu high"},
		"looks for devices": {
			cells: []cell{live("a", "cpu=1"), live("b", "cpu=90 nvidia.com/gpu=4")}, resources: "nvidia.com/gpu=4",
			want: "b 100.0 nvidia.com/gpu high"},

		"refuses a dark request that the policy doesn't permit": {
			cells: []cell{live("a", "cpu=1"), {"b", "prod", registry.StateDark, "cpu=90"}}, dark: true,
			want: `DarkNotPermitted: the request asks for a dark cell, which policy "web" doesn't permit`},
		"refuses a dark request before it says that no cell is permitted": {
			dark: true,
			want: `DarkNotPermitted: the request asks for a dark cell, which policy "web" doesn't permit`},
		"refuses when the policy selects no cell": {
			cells: []cell{{"a", "dev", registry.StateLive, "cpu=1"}},
			want:  `NoPermittedCells: policy "web" permits no registered cell`},
		"refuses when no cell is registered": {
			want: `NoPermittedCells: policy "web" permits no registered cell`},
		"refuses a policy without a selector": {
			cells: []cell{live("a", "cpu=1")}, noSelector: true,
			want: `NoPermittedCells: policy "web" permits no registered cell`},
		"refuses a strategy of later": {
			cells: []cell{live("a", "cpu=1")}, strategy: "Cheapest",
			want: `PlacementUnavailable: policy "web" asks for strategy "Cheapest", which this replica doesn't know`},
		"refuses when every cell is draining or dark": {
			cells: []cell{{"a", "prod", registry.StateDraining, "cpu=1"}, {"b", "prod", registry.StateDark, "cpu=1"},
				{"c", "prod", registry.StateDraining, "none"}, {"d", "prod", "", "cpu=1"}},
			want: `NoEligibleCells: no cell that policy "web" permits takes this placement: 2 draining, 1 dark, 1 in an unknown state`},
		"refuses a dark request when no cell is dark": {
			cells: []cell{live("a", "cpu=1")}, dark: true, allowDark: true,
			want: `NoEligibleCells: no cell that policy "web" permits takes this placement: 1 not dark`},
		"refuses when no accepting cell has a fresh report": {
			cells: []cell{live("a", "none"), live("b", "old"), {"c", "prod", registry.StateDraining, "cpu=1"}},
			want: `CapacityUnknown: no cell that policy "web" permits and that takes placements has a fresh capacity report: ` +
				`1 draining, 1 never reported, 1 stale`},
		"refuses when no cell has room": {
			cells: []cell{live("a", "memory=95"), live("b", "no nodes")}, resources: "memory=10",
			want: `NoEligibleCells: no cell that policy "web" permits takes this placement: ` +
				`1 without a node that takes pods, 1 without room for the request`},
		"says that there is no room when some cells are full and the rest unknown": {
			cells: []cell{live("a", "memory=95"), live("b", "none")}, resources: "memory=10",
			want: `NoEligibleCells: no cell that policy "web" permits takes this placement: ` +
				`1 never reported, 1 without room for the request`},
	}
	for name, test := range tests {
		for _, explain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/explain=%t", name, explain), func(t *testing.T) {
				w := newWorld(t)
				for _, c := range test.cells {
					w.cell(c.name, c.env, c.state)
				}
				for _, c := range test.cells {
					allocatable := hundred
					if c.name == "b" {
						allocatable += " nvidia.com/gpu=8"
					}
					switch c.report {
					case "none":
					case "old":
						w.report(c.name, noon, allocatable, "")
					case "no nodes":
						w.report(c.name, at(90), "", "")
					default:
						w.report(c.name, at(90), allocatable, c.report)
					}
				}
				p := permission(t, "prod", registry.StrategyLeastLoaded, test.allowDark)
				if test.strategy != "" {
					p.Strategy = test.strategy
				}
				if test.noSelector {
					p.Selector = nil
				}
				r := Request{Workload: "shop/cart", Dark: test.dark, Resources: amounts(t, test.resources), Explain: explain}
				d, refused := w.engine.Decide(r, p, at(90))
				got := fmt.Sprint(refused)
				if refused == nil {
					got = fmt.Sprint(d.Cell.Name, " ", d.Utilisation.Percent(), " ", d.Utilisation.Resource, " ", d.Confidence)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestPlaceReserves(t *testing.T) {
	tests := map[string]struct {
		resources string
		want      string // what the reservation is, then what the cell shows
	}{
		"what the request says":              {"memory=20", "[20], 30.0 memory"},
		"the default when it doesn't say it": {"", "[100m 128Mi 1], 134217738.0 memory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cell("a", "prod", registry.StateLive)
			w.report("a", noon, hundred, "memory=10")
			p := permission(t, "prod", registry.StrategyLeastLoaded, false)
			r := Request{Workload: "shop/cart", Resources: amounts(t, test.resources)}

			if d, _ := w.engine.Decide(r, p, noon); len(d.Reservation.Amounts) != 0 {
				t.Errorf("a dry run reserved %v", d.Reservation)
			}
			if d, _ := w.index.Describe("a", noon); d.Utilisation.Percent() != "10.0" {
				t.Errorf("after a dry run the cell is at %s", d.Utilisation.Percent())
			}
			d, refused := w.engine.Place(r, p, noon)
			if refused != nil {
				t.Fatal(refused)
			}
			after, _ := w.index.Describe("a", noon)
			got := fmt.Sprintf("%v, %s %s", d.Reservation.Amounts, after.Utilisation.Percent(), after.Utilisation.Resource)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			w.index.Release(d.Reservation, at(1))
			if d, _ := w.index.Describe("a", at(1)); d.Utilisation.Percent() != "10.0" {
				t.Errorf("after the release the cell is at %s", d.Utilisation.Percent())
			}
		})
	}
}

func TestAPermissionFollowsTheRows(t *testing.T) {
	w := newWorld(t)
	p := permission(t, "prod", registry.StrategyLeastLoaded, false)
	decide := func() string {
		d, refused := w.engine.Decide(Request{Workload: "shop/cart"}, p, noon)
		if refused != nil {
			return string(refused.Code)
		}
		return d.Cell.Name
	}
	relabel := func(env string) {
		row := w.rows[0].DeepCopy()
		row.Labels["env"] = env
		w.rows = []*registry.Cluster{row, w.rows[1]}
		w.engine.Register(w.rows)
	}
	if got := decide(); got != "NoPermittedCells" {
		t.Errorf("without a cell: %s", got)
	}
	w.cell("a", "dev", registry.StateLive)
	w.cell("b", "dev", registry.StateLive)
	w.report("a", noon, hundred, "")
	if got := decide(); got != "NoPermittedCells" {
		t.Errorf("without a cell of this env: %s", got)
	}
	relabel("prod")
	if got := decide(); got != "a" {
		t.Errorf("with a cell of this env: %s", got)
	}
	relabel("dev")
	if got := decide(); got != "NoPermittedCells" {
		t.Errorf("after the cell was relabelled: %s", got)
	}
}

func TestAdmit(t *testing.T) {
	w := newWorld(t)
	w.cell("live", "prod", registry.StateLive)
	w.cell("dark", "prod", registry.StateDark)
	w.cell("draining", "prod", registry.StateDraining)
	w.cell("other", "dev", registry.StateLive)
	tests := map[string]struct {
		cell            string
		dark, allowDark bool
		want            string
	}{
		"a live cell without a report":               {"live", false, false, "live"},
		"a dark cell for a dark request":             {"dark", true, true, "dark"},
		"no dark request that isn't permitted":       {"dark", true, false, `DarkNotPermitted: the request asks for a dark cell, which policy "web" doesn't permit`},
		"no dark cell otherwise":                     {"dark", false, true, `NoEligibleCells: cell "dark" takes no such placement: it is dark`},
		"no live cell for a dark request":            {"live", true, true, `NoEligibleCells: cell "live" takes no such placement: it is not dark`},
		"no draining cell":                           {"draining", false, true, `NoEligibleCells: cell "draining" takes no such placement: it is draining`},
		"no cell outside the policy":                 {"other", false, true, `CellChoiceNotPermitted: policy "web" permits no cell named "other"`},
		"no unknown cell, in the words of one above": {"nowhere", false, true, `CellChoiceNotPermitted: policy "web" permits no cell named "nowhere"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			row, refused := w.engine.Admit(test.cell, test.dark, permission(t, "prod", registry.StrategySticky, test.allowDark))
			got := fmt.Sprint(refused)
			if refused == nil {
				got = row.Name
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
