package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// Whatever the fleet, the policy and the request are, the engine decides as
// the reference does, with a trace and without, in whatever order the cells
// are registered and report.
func TestEngineAgreesWithTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		one, other := f.build(t, 1), f.build(t, 2)
		permissions := []*Permission{
			permission(t, "*", drawStrategy(t), true), permission(t, "prod", drawStrategy(t), true),
			permission(t, "prod", drawStrategy(t), false), permission(t, "none", drawStrategy(t), true),
		}
		for i, p := range permissions {
			p.Policy = fmt.Sprintf("policy-%d", i)
		}
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			f.now = f.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "wait")) * time.Second)
			r, p := drawRequest(t), rapid.SampledFrom(permissions).Draw(t, "policy")
			want := f.decide(r, p)
			for _, w := range []*world{one, other} {
				if diff := cmp.Diff(want, ask(w, r, p, f.now, true)); diff != "" {
					t.Fatalf("the reference and the engine: %s", diff)
				}
				plain := want
				plain.Reasons = nil
				if diff := cmp.Diff(plain, ask(w, r, p, f.now, false)); diff != "" {
					t.Fatalf("with a trace and without: %s", diff)
				}
				d, refused := w.engine.Place(r, p, f.now)
				if refused == nil && d.Cell.Name != want.Cell {
					t.Fatalf("Place chose %s, Decide %s", d.Cell.Name, want.Cell)
				}
				if refused == nil && w == one {
					f.took(p, d.Reservation)
				}
			}
		}
	})
}

// ask asks for a decision, and checks what holds of every one.
func ask(w *world, r Request, p *Permission, now time.Time, explain bool) answer {
	w.t.Helper()
	r.Explain = explain
	d, refused := w.engine.Decide(r, p, now)
	a := answer{Confidence: d.Confidence}
	if refused != nil {
		a.Refusal = refused.Code
	} else {
		a.Cell = d.Cell.Name
	}
	if d.Trace == nil {
		return a
	}
	a.Reasons = map[string]Reason{}
	all := d.Trace.All()
	if len(all) != len(w.rows) || !slices.IsSortedFunc(all, func(x, y v1alpha1.Candidate) int { return strings.Compare(x.Cell, y.Cell) }) {
		w.t.Fatalf("%d cells, and the trace is %v", len(w.rows), all)
	}
	for _, c := range all {
		reason := Reason(c.Reason)
		a.Reasons[c.Cell] = reason
		verdict := v1alpha1.VerdictEligible
		switch {
		case c.Cell == a.Cell:
			verdict = v1alpha1.VerdictChosen
			if c.UtilisationPercent != d.Utilisation.Percent() || c.WorstResource != string(d.Utilisation.Resource) {
				w.t.Fatalf("the decision says %v, the trace %v", d.Utilisation, c)
			}
		case reason != "":
			verdict = v1alpha1.VerdictExcluded
		}
		if c.Verdict != verdict || c.Stage != reason.Stage() || (c.Message == "") != (reason == "") {
			w.t.Fatalf("the trace has %+v, want verdict %s and stage %s", c, verdict, reason.Stage())
		}
		if c.Stage == v1alpha1.StagePermission && (c.UtilisationPercent != "" || c.ReportAgeSeconds != nil) {
			w.t.Fatalf("the trace tells of a cell that is out of reach: %+v", c)
		}
	}
	return a
}

// build makes an engine of the fleet, in some order.
func (f *reference) build(t tester, seed uint64) *world {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(seed, seed))
	for _, i := range random.Perm(len(f.cells)) {
		c := f.cells[i]
		row := &registry.Cluster{Spec: registry.ClusterSpec{State: c.state}}
		row.Name, row.Labels = c.name, map[string]string{"env": c.env}
		w.rows = append(w.rows, row)
	}
	w.engine.Register(w.rows)
	random.Shuffle(len(f.cells), func(i, j int) { f.cells[i], f.cells[j] = f.cells[j], f.cells[i] })
	slices.SortStableFunc(f.cells, func(a, b *referenceCell) int { return a.reported.Compare(b.reported) })
	for _, c := range f.cells {
		if c.reported.IsZero() {
			continue
		}
		s := &v1alpha1.CellCapacitySpec{Sequence: 1, ObservedAt: metav1.NewMicroTime(c.reported),
			Allocatable: quantities(c.allocatable), Requested: quantities(c.requested)}
		if len(c.allocatable) > 0 {
			s.Nodes = 1
		}
		w.observe(c.name, c.reported, s)
	}
	return w
}

func quantities(values map[corev1.ResourceName]int64) v1alpha1.ResourceList {
	l := v1alpha1.ResourceList{}
	for name, value := range values {
		l[name] = *resource.NewQuantity(value, resource.DecimalSI)
		if name == "cpu" {
			l[name] = *resource.NewMilliQuantity(value, resource.DecimalSI)
		}
	}
	return l
}

// drawFleet draws cells that often tie and are often nearly full.
func drawFleet(t *rapid.T) *reference {
	f := &reference{now: noon, turns: map[string]string{}}
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	numbers := random.Perm(999)[:rapid.SampledFrom([]int{0, 1, 2, 5, 20, 63, 64, 65, 130, 200}).Draw(t, "cells")]
	pick := func(n int) int64 { return int64(random.IntN(n)) }
	odd := rapid.IntRange(1, 10).Draw(t, "one in so many is out of order")
	for _, n := range numbers {
		c := &referenceCell{name: fmt.Sprintf("c%03d", n), env: "prod", state: registry.StateLive, reported: noon}
		if pick(odd) == 0 {
			c.env = []string{"prod", "dev"}[pick(2)]
			c.state = []registry.ClusterState{registry.StateLive, registry.StateDark, registry.StateDraining, ""}[pick(4)]
			c.reported = []time.Time{noon, {}, noon.Add(-90 * time.Second), noon.Add(-30 * time.Second)}[pick(4)]
		}
		if pick(4*odd) != 0 {
			size := 1 + pick(3)
			c.allocatable = map[corev1.ResourceName]int64{"cpu": 10 * size, "memory": 20 * size, "pods": 30 * size}
			c.requested = map[corev1.ResourceName]int64{"cpu": pick(3), "memory": pick(25), "pods": pick(3)}
			if pick(3) == 0 {
				c.allocatable["nvidia.com/gpu"], c.requested["nvidia.com/gpu"] = pick(3), pick(3)
			}
		}
		f.cells = append(f.cells, c)
	}
	return f
}

func drawRequest(t *rapid.T) Request {
	r := Request{
		Workload: rapid.SampledFrom([]string{"shop/cart", "shop/search", "pay/api"}).Draw(t, "workload"),
		Dark:     rapid.IntRange(0, 4).Draw(t, "dark") == 0,
	}
	if rapid.Bool().Draw(t, "resources") {
		wants := map[corev1.ResourceName]int64{}
		for _, name := range []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "pods"} {
			if rapid.Bool().Draw(t, string(name)) {
				wants[name] = rapid.Int64Range(1, 5).Draw(t, "amount")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(wants)) {
			r.Resources = append(r.Resources, capacity.Amount{Resource: name, Value: wants[name]})
		}
	}
	return r
}

func drawStrategy(t *rapid.T) registry.Strategy {
	return rapid.SampledFrom([]registry.Strategy{
		registry.StrategyLeastLoaded, registry.StrategyRoundRobin, registry.StrategySticky}).Draw(t, "strategy")
}
