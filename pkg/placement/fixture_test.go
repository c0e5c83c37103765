package placement

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// noon is when the tests begin.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// at is a number of seconds after noon.
func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// tester is a test, a benchmark or a rapid check.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// world is an engine with its cells.
type world struct {
	t      tester
	index  *capacity.Index
	engine *Engine
	rows   []*registry.Cluster
}

func newWorld(t tester) *world {
	index := capacity.New(capacity.Options{}, at(-3600))
	return &world{t: t, index: index, engine: New(index, nil)}
}

// cell registers a cell of the given env.
func (w *world) cell(name, env string, state registry.ClusterState) {
	w.rows = append(w.rows, &registry.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}},
		Spec:       registry.ClusterSpec{State: state},
	})
	w.engine.Register(w.rows)
}

// set changes the state of a cell.
func (w *world) set(name string, state registry.ClusterState) {
	for i, row := range w.rows {
		if row.Name == name {
			changed := row.DeepCopy()
			changed.Spec.State = state
			w.rows[i] = changed
		}
	}
	w.engine.Register(w.rows)
}

// report reports on a cell as of now; no allocatable means no node.
func (w *world) report(name string, now time.Time, allocatable, requested string) {
	w.t.Helper()
	s := &v1alpha1.CellCapacitySpec{Sequence: now.UnixNano(), ObservedAt: metav1.NewMicroTime(now),
		Allocatable: list(w.t, allocatable), Requested: list(w.t, requested)}
	if allocatable != "" {
		s.Nodes = 3
	}
	w.observe(name, now, s)
}

func (w *world) observe(name string, now time.Time, s *v1alpha1.CellCapacitySpec) {
	w.t.Helper()
	r, refused := capacity.ParseReport(s)
	if refused == nil {
		_, refused = w.index.Observe(name, r, now)
	}
	if refused != nil {
		w.t.Fatal(refused)
	}
}

// list reads words such as cpu=4.
func list(t tester, words string) v1alpha1.ResourceList {
	t.Helper()
	result := v1alpha1.ResourceList{}
	for _, word := range strings.Fields(words) {
		name, quantity, _ := strings.Cut(word, "=")
		q, err := resource.ParseQuantity(quantity)
		if err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		result[corev1.ResourceName(name)] = q
	}
	return result
}

// amounts reads words such as cpu=4.
func amounts(t tester, words string) capacity.Amounts {
	t.Helper()
	a, refused := capacity.ParseAmounts("spec.resources", list(t, words))
	if refused != nil {
		t.Fatal(refused)
	}
	return a
}

// permission permits the cells of an env, or with * every cell.
func permission(t tester, env string, strategy registry.Strategy, allowDark bool) *Permission {
	t.Helper()
	selector := labels.Everything()
	if env != "*" {
		selector = labels.SelectorFromSet(labels.Set{"env": env})
	}
	return &Permission{Policy: "web", Selector: selector, Strategy: strategy, AllowDark: allowDark}
}
