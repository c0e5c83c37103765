package capacity_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// model is what an index should know of a cell, the plain way.
type model struct {
	sequence int64
	received time.Time
	report   *v1alpha1.CellCapacitySpec
	placed   []capacity.Reservation
}

func (m *model) health(now time.Time) v1alpha1.CapacityHealth {
	switch {
	case m.report == nil:
		return v1alpha1.CapacityUnknown
	case now.Sub(m.received) >= 90*time.Second:
		return v1alpha1.CapacityStale
	default:
		return v1alpha1.CapacityFresh
	}
}

// utilisation is that of the fullest dimension with the demand placed.
func (m *model) utilisation(now time.Time, demand capacity.Amounts) float64 {
	worst := 0.0
	for name, allocatable := range m.report.Allocatable {
		load := m.value(m.report.Requested, name)
		for _, r := range m.placed {
			if now.Sub(r.At) < 60*time.Second {
				load += m.value(r.Amounts.List(), name)
			}
		}
		total := m.value(v1alpha1.ResourceList{name: allocatable}, name)
		if total > 0 {
			worst = max(worst, load/total+m.value(demand.List(), name)/total)
		}
	}
	return worst
}

func (m *model) value(list v1alpha1.ResourceList, name corev1.ResourceName) float64 {
	q := list[name]
	return q.AsApproximateFloat64()
}

// Whatever happens, an index shows of each cell what the plain model shows, and
// what it says of 64 cells at once holds for each of them. Reports take nothing
// off the reservations here: what is requested never grows.
func TestIndexAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ix, cells, now := capacity.New(capacity.Options{}, noon), map[string]*model{}, noon
		name := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("cell-%02d", rapid.IntRange(0, 69).Draw(t, "cell")) })
		sync := func(t *rapid.T) {
			var names []string
			kept := map[string]*model{}
			for _, n := range rapid.SliceOfNDistinct(name, 1, 70, rapid.ID).Draw(t, "names") {
				names, kept[n] = append(names, n), &model{}
				if cells[n] != nil {
					kept[n] = cells[n]
				}
			}
			cells = kept
			ix.Sync(names, nil)
		}
		sync(t)
		t.Repeat(map[string]func(*rapid.T){
			"sync": sync,
			"wait": func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "seconds")) * time.Second) },
			"report": func(t *rapid.T) {
				n, s := name.Draw(t, "name"), drawReport(t, now)
				_, refused := ix.Observe(n, parse(t, s), now)
				m := cells[n]
				switch {
				case m == nil && refused == nil:
					t.Fatal("a report about a cell that isn't registered was taken")
				case m == nil:
				case (s.Sequence > m.sequence) != (refused == nil):
					t.Fatalf("sequence %d after %d: %v", s.Sequence, m.sequence, refused)
				case refused == nil:
					m.sequence, m.received, m.report = s.Sequence, now, s
				}
			},
			"reserve": func(t *rapid.T) {
				n := name.Draw(t, "name")
				r := capacity.Reservation{Cell: n, Amounts: drawDemand(t), At: now}
				ix.Reserve(r, now)
				if cells[n] != nil {
					cells[n].placed = append(cells[n].placed, r)
				}
			},
			"release": func(t *rapid.T) {
				m := cells[name.Draw(t, "name")]
				if m == nil || len(m.placed) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(m.placed)-1).Draw(t, "reservation")
				ix.Release(m.placed[i], now)
				m.placed = append(m.placed[:i:i], m.placed[i+1:]...)
			},
			"": func(t *rapid.T) { check(t, ix, cells, now) },
		})
	})
}

func check(t *rapid.T, ix *capacity.Index, cells map[string]*model, now time.Time) {
	amounts := drawDemand(t)
	demand := capacity.NewDemand(amounts)
	view := ix.At(now)
	defer view.Close()
	slot := 0
	for i := range 70 {
		m := cells[fmt.Sprintf("cell-%02d", i)]
		if m == nil {
			continue
		}
		block, bit := view.Block(slot/64), uint64(1)<<(slot%64)
		if fresh := block.Fresh&bit != 0; fresh != (m.health(now) == v1alpha1.CapacityFresh) {
			t.Fatalf("cell %d: fresh is %t, want %s", i, fresh, m.health(now))
		}
		open := m.health(now) == v1alpha1.CapacityFresh && m.report.Nodes > 0
		if block.Open&bit != 0 != open {
			t.Fatalf("cell %d: open is %t, want %t", i, !open, open)
		}
		if open {
			score, want := view.Score(slot, &demand), m.utilisation(now, amounts)
			if math.Abs(score-want) > 1e-9 {
				t.Fatalf("cell %d: score is %v, want %v", i, score, want)
			}
			if u := view.Utilisation(slot, &demand); u.Ratio != score {
				t.Fatalf("cell %d: utilisation is %v, score %v", i, u, score)
			}
			if floor := view.Floor(block, &demand); floor > score {
				t.Fatalf("cell %d: score is %v, under the floor %v", i, score, floor)
			}
			if view.AtMost(score, slot/64, bit, &demand) != bit {
				t.Fatalf("cell %d: its score %v is not at most itself", i, score)
			}
		}
		slot++
	}
}

func drawReport(t *rapid.T, now time.Time) *v1alpha1.CellCapacitySpec {
	s := &v1alpha1.CellCapacitySpec{
		Sequence:    rapid.Int64Range(1, 20).Draw(t, "sequence"),
		ObservedAt:  metav1.NewMicroTime(now),
		Nodes:       rapid.Int32Range(0, 3).Draw(t, "nodes"),
		Allocatable: v1alpha1.ResourceList{},
		Requested:   v1alpha1.ResourceList{},
	}
	if s.Nodes == 0 {
		return s
	}
	// Less is requested the later the report comes.
	load := float64(21-s.Sequence) / 20
	for _, name := range []corev1.ResourceName{"cpu", "memory", "pods", "nvidia.com/gpu"} {
		total := rapid.Int64Range(1, 1000).Draw(t, string(name))
		s.Allocatable[name] = *resource.NewQuantity(1000*total, resource.DecimalSI)
		s.Requested[name] = *resource.NewQuantity(int64(load*1000), resource.DecimalSI)
	}
	return s
}

func drawDemand(t *rapid.T) capacity.Amounts {
	var a capacity.Amounts
	for _, name := range []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "pods"} {
		if n := rapid.Int64Range(0, 500).Draw(t, string(name)); n > 0 {
			a = append(a, capacity.Amount{Resource: name, Value: n})
		}
	}
	return a
}
