package capacity_test

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// noon is when the tests begin.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// at is a number of seconds after noon.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// tester is a test, a benchmark, a fuzz target or a rapid check.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
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

// spec is a sound report of a cell with 10 cores, 100 bytes and 100 pods.
func spec(t tester, sequence int64, observed time.Time, requested string) *v1alpha1.CellCapacitySpec {
	t.Helper()
	return &v1alpha1.CellCapacitySpec{
		Sequence:    sequence,
		ObservedAt:  metav1.NewMicroTime(observed),
		Nodes:       3,
		Allocatable: list(t, "cpu=10 memory=100 pods=100"),
		Requested:   list(t, requested),
	}
}

func parse(t tester, s *v1alpha1.CellCapacitySpec) capacity.Report {
	t.Helper()
	r, refused := capacity.ParseReport(s)
	if refused != nil {
		t.Fatal(refused)
	}
	return r
}

// observe reports on cell a, as of the time when it's received.
func observe(t tester, ix *capacity.Index, sequence int64, now time.Time, requested string) {
	t.Helper()
	if _, refused := ix.Observe("a", parse(t, spec(t, sequence, now, requested)), now); refused != nil {
		t.Fatal(refused)
	}
}

// newIndex has the cells a and b, of which nothing is known.
func newIndex() *capacity.Index {
	ix := capacity.New(capacity.Options{}, noon)
	ix.Sync([]string{"b", "a"}, nil)
	return ix
}

// shown is what the index shows of a cell, such as "Fresh 40.0 cpu".
func shown(t tester, ix *capacity.Index, cell string, now time.Time) string {
	t.Helper()
	d, registered := ix.Describe(cell, now)
	if !registered {
		return "not registered"
	}
	return strings.TrimSpace(string(d.Health) + " " + d.Utilisation.Percent() + " " + string(d.Utilisation.Resource))
}
