package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// fleetSizes are the numbers of cells that are measured. The policies, a
// hundred of them, permit every one.
func fleetSizes() []int { return []int{100, 1_000, 10_000, 100_000} }

// BenchmarkDecide is the ordinary case: unequal cells with unequal loads, and
// requests that say what they need.
func BenchmarkDecide(b *testing.B) {
	benchmark(b, unequal, registry.StrategyLeastLoaded, stated, false)
}

// BenchmarkDecideUnstated is the same for requests that don't say it.
func BenchmarkDecideUnstated(b *testing.B) {
	benchmark(b, unequal, registry.StrategyLeastLoaded, "", false)
}

// BenchmarkDecideIdle is a fleet of equal and empty cells: all of them tie.
func BenchmarkDecideIdle(b *testing.B) {
	benchmark(b, idle, registry.StrategyLeastLoaded, stated, false)
}

// BenchmarkDecideSettled is a fleet that placements have filled evenly: every
// cell is nearly as good as the best.
func BenchmarkDecideSettled(b *testing.B) {
	benchmark(b, settled, registry.StrategyLeastLoaded, stated, false)
}

func BenchmarkDecideSticky(b *testing.B) {
	benchmark(b, unequal, registry.StrategySticky, stated, false)
}

func BenchmarkDecideRoundRobin(b *testing.B) {
	benchmark(b, unequal, registry.StrategyRoundRobin, stated, false)
}

// BenchmarkDecideExplain includes the trace of every cell.
func BenchmarkDecideExplain(b *testing.B) {
	benchmark(b, unequal, registry.StrategyLeastLoaded, stated, true)
}

// BenchmarkPlace includes the reservation, which the next decision sees.
func BenchmarkPlace(b *testing.B) {
	for _, cells := range fleetSizes() {
		b.Run(fmt.Sprintf("cells=%d", cells), func(b *testing.B) {
			w, permissions, requests := benchmarkWorld(b, cells, unequal, registry.StrategyLeastLoaded, "")
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, refused := w.engine.Place(requests[i%len(requests)], permissions[i%len(permissions)], noon); refused != nil {
					b.Fatal(refused)
				}
			}
		})
	}
}

// stated is what a request of the benchmarks needs.
const stated = "cpu=500m memory=1Gi pods=2"

func benchmark(b *testing.B, draw shape, strategy registry.Strategy, resources string, explain bool) {
	for _, cells := range fleetSizes() {
		b.Run(fmt.Sprintf("cells=%d", cells), func(b *testing.B) {
			w, permissions, requests := benchmarkWorld(b, cells, draw, strategy, resources)
			for i := range requests {
				requests[i].Explain = explain
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, refused := w.engine.Decide(requests[i%len(requests)], permissions[i%len(permissions)], noon); refused != nil {
					b.Fatal(refused)
				}
			}
		})
	}
}

func benchmarkWorld(b *testing.B, cells int, draw shape, strategy registry.Strategy, resources string) (*world, []*Permission, []Request) {
	w := newWorld(b)
	for i := range cells {
		row := &registry.Cluster{Spec: registry.ClusterSpec{State: registry.StateLive}}
		row.Name, row.Labels = fmt.Sprintf("cell-%06d", i), map[string]string{"env": "prod"}
		w.rows = append(w.rows, row)
	}
	w.engine.Register(w.rows)
	random := rand.New(rand.NewPCG(1, 2))
	for _, row := range w.rows {
		size, load := draw(random)
		w.observe(row.Name, noon, &v1alpha1.CellCapacitySpec{
			Sequence: 1, ObservedAt: metav1.NewMicroTime(noon), Nodes: 3,
			Allocatable: scaled(size, 1), Requested: scaled(size, load),
		})
	}
	requests := make([]Request, 64)
	for i := range requests {
		requests[i] = Request{Workload: fmt.Sprintf("team-%d/app-%d", i%7, i), Resources: amounts(b, resources)}
	}
	permissions := make([]*Permission, 100)
	for i := range permissions {
		permissions[i] = &Permission{Policy: fmt.Sprintf("policy-%d", i), Selector: labels.Everything(), Strategy: strategy}
		if _, refused := w.engine.Decide(requests[0], permissions[i], noon); refused != nil {
			b.Fatal(refused)
		}
	}
	return w, permissions, requests
}

// scaled is a part of a cell of the given size.
func scaled(size, part float64) v1alpha1.ResourceList {
	return v1alpha1.ResourceList{
		"cpu":    *resource.NewMilliQuantity(int64(64_000*size*part), resource.DecimalSI),
		"memory": *resource.NewQuantity(int64(256e9*size*part*0.9), resource.BinarySI),
		"pods":   *resource.NewQuantity(int64(1000*size*part), resource.DecimalSI),
	}
}

// shape draws a cell: its size, and how much of it is requested.
type shape func(*rand.Rand) (size, load float64)

func idle(*rand.Rand) (size, load float64) { return 1, 0 }

func unequal(r *rand.Rand) (size, load float64) { return 1 + 15*r.Float64(), 0.9 * r.Float64() }

func settled(r *rand.Rand) (size, load float64) { return 1 + 15*r.Float64(), 0.6 + 0.01*r.Float64() }

// BenchmarkRegister is what a change of a row costs, outside of any request.
func BenchmarkRegister(b *testing.B) {
	for _, cells := range fleetSizes() {
		b.Run(fmt.Sprintf("cells=%d", cells), func(b *testing.B) {
			w, _, _ := benchmarkWorld(b, cells, idle, registry.StrategyLeastLoaded, "")
			for b.Loop() {
				w.engine.Register(w.rows)
			}
		})
	}
}
