package placement

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// equalCells are n empty cells named c000 and so on.
func equalCells(t tester, n int) *world {
	w := newWorld(t)
	for i := range n {
		w.rows = append(w.rows, &registry.Cluster{Spec: registry.ClusterSpec{State: registry.StateLive}})
		w.rows[i].Name = fmt.Sprintf("c%03d", i)
	}
	w.engine.Register(w.rows)
	for _, row := range w.rows {
		w.report(row.Name, noon, "cpu=100 memory=1Ti pods=1000", "")
	}
	return w
}

// place places and names the cell.
func (w *world) place(p *Permission, workload, resources string) string {
	w.t.Helper()
	d, refused := w.engine.Place(Request{Workload: workload, Resources: amounts(w.t, resources)}, p, noon)
	if refused != nil {
		w.t.Fatal(refused)
	}
	return d.Cell.Name
}

// Placements by many callers at once, whatever they place, spread a burst
// evenly: each decision sees the reservation of the one before.
func TestABurstSpreads(t *testing.T) {
	for name, resources := range map[string]string{
		"when requests say what they need": "cpu=250m memory=1Gi",
		"when they don't":                  "",
	} {
		t.Run(name, func(t *testing.T) {
			const cells, callers, each = 70, 7, 33
			w := equalCells(t, cells)
			p := permission(t, "*", registry.StrategyLeastLoaded, false)
			r := Request{Workload: "shop/cart", Resources: amounts(t, resources)}
			var (
				mu    sync.Mutex
				count = map[string]int{}
				wait  sync.WaitGroup
			)
			for range callers {
				wait.Go(func() {
					for range each {
						d, refused := w.engine.Place(r, p, noon)
						if refused != nil {
							t.Error(refused)
							return
						}
						mu.Lock()
						count[d.Cell.Name]++
						mu.Unlock()
					}
				})
			}
			wait.Wait()
			placed := slices.Collect(maps.Values(count))
			if len(count) != cells || slices.Max(placed)-slices.Min(placed) > 1 {
				t.Errorf("%d placements on %d cells: %v", callers*each, len(count), count)
			}
		})
	}
}

func TestTiesSpreadByWorkload(t *testing.T) {
	w := equalCells(t, 20)
	p := permission(t, "*", registry.StrategyLeastLoaded, false)
	count := map[string]int{}
	for i := range 2000 {
		d, refused := w.engine.Decide(Request{Workload: fmt.Sprintf("team-%d/app-%d", i%7, i)}, p, noon)
		if refused != nil {
			t.Fatal(refused)
		}
		count[d.Cell.Name]++
	}
	assertEven(t, count, 20, 2000)
}

// assertEven allows what chance allows: five standard deviations.
func assertEven(t *testing.T, count map[string]int, cells, total int) {
	t.Helper()
	mean := float64(total) / float64(cells)
	if len(count) != cells {
		t.Errorf("%d of %d cells got something: %v", len(count), cells, count)
	}
	for cell, n := range count {
		if math.Abs(float64(n)-mean) > 5*math.Sqrt(mean) {
			t.Errorf("%s got %d, the mean is %.0f", cell, n, mean)
		}
	}
}

func TestRoundRobin(t *testing.T) {
	w := equalCells(t, 5)
	p := permission(t, "*", registry.StrategyRoundRobin, false)
	turns := func(n int) string {
		var cells []string
		for range n {
			cells = append(cells, w.place(p, "shop/cart", "cpu=1"))
		}
		return strings.Join(cells, " ")
	}
	for _, step := range []struct {
		what string
		do   func()
		n    int
		want string
	}{
		{"from the first cell, and around", func() {}, 6, "c000 c001 c002 c003 c004 c000"},
		{"past a cell that is passed over, whose neighbour gets no second turn",
			func() { w.set("c001", registry.StateDraining) }, 5, "c002 c003 c004 c000 c002"},
		{"on from a cell that has left", func() { w.rows = append(w.rows[:2:2], w.rows[3:]...); w.engine.Register(w.rows) }, 3, "c003 c004 c000"},
		{"with a cell that is back", func() { w.set("c001", registry.StateLive) }, 3, "c001 c003 c004"},
		{"past a cell without room", func() { w.report("c000", at(1), "cpu=100 memory=1Ti pods=1000", "cpu=100") }, 2, "c001 c003"},
	} {
		step.do()
		if diff := cmp.Diff(step.want, turns(step.n)); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
	}

	other := permission(t, "*", registry.StrategyRoundRobin, false)
	other.Policy = "other"
	if got := w.place(other, "shop/cart", ""); got != "c000" {
		t.Errorf("another policy begins at %s", got)
	}
	again := permission(t, "*", registry.StrategyRoundRobin, false)
	if got := w.place(again, "shop/cart", ""); got != "c004" {
		t.Errorf("the policy, read anew, goes on at %s", got)
	}
	for range 3 {
		if d, _ := w.engine.Decide(Request{Workload: "shop/cart"}, again, noon); d.Cell.Name != "c000" {
			t.Errorf("a dry run took a turn: %s", d.Cell.Name)
		}
	}
}

func TestRoundRobinGivesEachCellATurnPerRound(t *testing.T) {
	w := equalCells(t, 200)
	p := permission(t, "*", registry.StrategyRoundRobin, false)
	for turn := range 500 {
		if got, want := w.place(p, "shop/cart", ""), fmt.Sprintf("c%03d", turn%200); got != want {
			t.Fatalf("turn %d went to %s, want %s", turn, got, want)
		}
	}
}

func TestStickyMovesTheWorkloadsOfTheDrainedCellAlone(t *testing.T) {
	const workloads = 5000
	w := equalCells(t, 10)
	p := permission(t, "*", registry.StrategySticky, false)
	assign := func() map[string]string {
		cells := map[string]string{}
		for i := range workloads {
			workload := fmt.Sprintf("team-%d/app-%d", i%7, i)
			cells[workload] = w.place(p, workload, "")
		}
		return cells
	}
	before := assign()
	if diff := cmp.Diff(before, assign()); diff != "" {
		t.Errorf("a workload moved although nothing changed: %s", diff)
	}
	w.set("c004", registry.StateDraining)
	after := assign()
	moved, placed := map[string]int{}, map[string]int{}
	for workload, cell := range before {
		placed[cell]++
		if after[workload] != cell && cell != "c004" {
			t.Errorf("%s moved from %s to %s", workload, cell, after[workload])
		}
		if cell == "c004" {
			moved[after[workload]]++
		}
	}
	assertEven(t, placed, 10, workloads)
	assertEven(t, moved, 9, placed["c004"])

	w.set("c004", registry.StateLive)
	if diff := cmp.Diff(before, assign()); diff != "" {
		t.Errorf("not every workload came back: %s", diff)
	}
}

func TestStickyLeavesACellWithoutRoom(t *testing.T) {
	w := equalCells(t, 2)
	p := permission(t, "*", registry.StrategySticky, false)
	home := w.place(p, "shop/cart", "cpu=60")
	if next := w.place(p, "shop/cart", "cpu=60"); next == home {
		t.Errorf("%s has room for one and got two", home)
	}
}

// What decides where Sticky keeps a workload must not change between versions.
func TestHashesStayTheSame(t *testing.T) {
	if got := hashOf("payments/api"); got != 0x96ee2cfce2dfcaa6 {
		t.Errorf("the hash of payments/api is %#x", got)
	}
	if got := tasteOf("payments/api").rank(hashOf("cell-01")); got != 0xad632da0a1b13549 {
		t.Errorf("its rank on cell-01 is %#x", got)
	}
}
