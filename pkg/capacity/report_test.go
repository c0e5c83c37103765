package capacity_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// edit changes a sound report.
type edit func(*v1alpha1.CellCapacitySpec)

func TestParseReportRefuses(t *testing.T) {
	allocatable := func(words string) edit {
		return func(s *v1alpha1.CellCapacitySpec) { s.Allocatable = list(t, words) }
	}
	requested := func(words string) edit {
		return func(s *v1alpha1.CellCapacitySpec) { s.Requested = list(t, words) }
	}
	many := "cpu=1 memory=1 pods=1"
	for i := range 62 {
		many += fmt.Sprintf(" example.com/r%d=1", i)
	}
	tests := map[string]struct {
		edit edit
		want string
	}{
		"a sequence of zero": {func(s *v1alpha1.CellCapacitySpec) { s.Sequence = 0 },
			"InvalidRequest: spec.sequence: must be above zero"},
		"no time": {func(s *v1alpha1.CellCapacitySpec) { s.ObservedAt = metav1.MicroTime{} },
			"InvalidRequest: spec.observedAt: must say when the figures were taken"},
		"fewer than no nodes": {func(s *v1alpha1.CellCapacitySpec) { s.Nodes = -1 },
			"InvalidRequest: spec.nodes: must not be negative"},
		"resources without a node": {func(s *v1alpha1.CellCapacitySpec) { s.Nodes = 0 },
			"InvalidRequest: spec.allocatable: must be empty when no node takes pods"},
		"requests without a node": {func(s *v1alpha1.CellCapacitySpec) { s.Nodes, s.Allocatable = 0, nil },
			"InvalidRequest: spec.requested[cpu]: is not a resource of spec.allocatable"},
		"a node without cpu": {allocatable("memory=100 pods=100"),
			"InvalidRequest: spec.requested[cpu]: is not a resource of spec.allocatable"},
		"a node with zero memory": {allocatable("cpu=10 memory=0 pods=100"),
			"InvalidRequest: spec.allocatable[memory]: must be above zero when a node takes pods"},
		"a node that takes no pods": {allocatable("cpu=10 memory=100"),
			"InvalidRequest: spec.allocatable[pods]: must be above zero when a node takes pods"},
		"a negative quantity": {allocatable("cpu=10 memory=100 pods=-100"),
			"InvalidRequest: spec.allocatable[pods]: must not be negative"},
		"a tiny negative quantity": {requested("cpu=-1n"),
			"InvalidRequest: spec.requested[cpu]: must not be negative"},
		"a quantity that int64 can't hold": {allocatable("cpu=10 memory=1e30 pods=100"),
			"InvalidRequest: spec.allocatable[memory]: is out of range: it must not exceed 10^18"},
		"a quantity that the API machinery cut to the largest int64": {allocatable("cpu=10 memory=16Ei pods=100"),
			"InvalidRequest: spec.allocatable[memory]: is out of range: it must not exceed 10^18"},
		"cores of which int64 can't hold the thousandths": {allocatable("cpu=1000000000000001 memory=100 pods=100"),
			"InvalidRequest: spec.allocatable[cpu]: is out of range: it must not exceed 10^15"},
		"a quantity whose digits would fill the memory": {requested("memory=1e2000000000"),
			"InvalidRequest: spec.requested[memory]: is out of range: it must not exceed 10^18"},
		"a resource that isn't allocatable": {requested("cpu=1 nvidia.com/gpu=1"),
			"InvalidRequest: spec.requested[nvidia.com/gpu]: is not a resource of spec.allocatable"},
		"65 resources": {allocatable(many),
			"InvalidRequest: spec.allocatable: names 65 resources; at most 64 are taken"},
		"a name that no resource can have": {allocatable("cpu=10 memory=100 pods=100 <script>=1"),
			"InvalidRequest: spec.allocatable: names a resource that can't be one: name part must consist of alphanumeric characters, " +
				"'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', " +
				"regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := spec(t, 1, noon, "cpu=4")
			test.edit(s)
			r, refused := capacity.ParseReport(s)
			if refused == nil {
				t.Fatalf("taken: %+v", r)
			}
			if diff := cmp.Diff(test.want, refused.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseReportTakes(t *testing.T) {
	tests := map[string]struct {
		nodes                  int32
		allocatable, requested string
		want                   string
	}{
		"a cell without a node":                      {0, "", "", "Fresh"},
		"an empty cell":                              {1, "cpu=10 memory=100 pods=100", "", "Fresh 0.0 cpu"},
		"a cell whose fullest dimension is memory":   {1, "cpu=10 memory=100 pods=100", "cpu=1 memory=95", "Fresh 95.0 memory"},
		"a cell that lost a node":                    {1, "cpu=10 memory=100 pods=100", "cpu=15", "Fresh 150.0 cpu"},
		"a device of which there is none":            {1, "cpu=10 memory=100 pods=100 nvidia.com/gpu=0", "cpu=4 nvidia.com/gpu=2", "Fresh 40.0 cpu"},
		"a device that is the fullest dimension":     {1, "cpu=10 memory=100 pods=100 nvidia.com/gpu=8", "cpu=4 nvidia.com/gpu=7", "Fresh 87.5 nvidia.com/gpu"},
		"thousandths of a core":                      {1, "cpu=10 memory=100 pods=100", "cpu=1234m", "Fresh 12.3 cpu"},
		"a fraction of a byte, as a whole one":       {1, "cpu=10 memory=100 pods=100", "memory=100m", "Fresh 1.0 memory"},
		"the most that is taken":                     {1, "cpu=1P memory=1E pods=1E", "cpu=1P", "Fresh 100.0 cpu"},
		"an absurd load, without leaving the finite": {1, "cpu=1m memory=1 pods=1", "memory=1E", "Fresh 100000000000000000000.0 memory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ix := newIndex()
			s := &v1alpha1.CellCapacitySpec{Sequence: 1, ObservedAt: metav1.NewMicroTime(noon), Nodes: test.nodes,
				Allocatable: list(t, test.allocatable), Requested: list(t, test.requested)}
			if _, refused := ix.Observe("a", parse(t, s), noon); refused != nil {
				t.Fatal(refused)
			}
			if got := shown(t, ix, "a", noon); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestParseAmounts(t *testing.T) {
	got := amounts(t, "pods=3 cpu=1500m memory=2Gi nvidia.com/gpu=0")
	want := capacity.Amounts{{Resource: "cpu", Value: 1500}, {Resource: "memory", Value: 2 << 30}, {Resource: "pods", Value: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	written := make([]string, len(got))
	for i, a := range got {
		written[i] = a.String()
	}
	if diff := cmp.Diff("1500m 2Gi 3", strings.Join(written, " ")); diff != "" {
		t.Error(diff)
	}
	again, refused := capacity.ParseAmounts("spec.resources", got.List())
	if diff := cmp.Diff(want, again); diff != "" || refused != nil {
		t.Error(diff, refused)
	}
}
