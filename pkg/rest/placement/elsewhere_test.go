package placement

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/refusal"
)

// trace is that of a decision over so many live cells that have reported.
func trace(t *testing.T, names ...string) *placement.Trace {
	t.Helper()
	noon := time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)
	index := capacity.New(capacity.Options{}, noon)
	engine := placement.New(index, nil)
	var rows []*registryv1alpha1.Cluster
	for _, name := range names {
		rows = append(rows, &registryv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: registryv1alpha1.ClusterSpec{State: registryv1alpha1.StateLive},
		})
	}
	engine.Register(rows)
	for _, name := range names {
		report, refused := capacity.ParseReport(&cellcastv1alpha1.CellCapacitySpec{
			Sequence: 1, ObservedAt: metav1.NewMicroTime(noon), Nodes: 1,
			Allocatable: cellcastv1alpha1.ResourceList{
				"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110"),
			},
		})
		if refused == nil {
			_, refused = index.Observe(name, report, noon)
		}
		if refused != nil {
			t.Fatal(refused)
		}
	}
	d, refused := engine.Decide(placement.Request{Workload: "payments/api", Explain: true},
		&placement.Permission{Policy: "shop", Selector: labels.Everything(), Strategy: registryv1alpha1.StrategyLeastLoaded}, noon)
	if refused != nil {
		t.Fatal(refused)
	}
	return d.Trace
}

func TestAFailedMintIsTriedElsewhereSoon(t *testing.T) {
	mint := func(kind failure.Kind) error {
		return refusal.New(refusal.MintUnavailable, "no token").RetriedAfter(12 * time.Second).Because(&failure.Error{Kind: kind, Cell: "a", Err: errors.New("x")})
	}
	for sentence, tt := range map[string]struct {
		err   error
		cells []string
		want  time.Duration
	}{
		"a cell that can't be reached, beside another": {mint(failure.Unreachable), []string{"a", "b"}, time.Second},
		"a cell that can't serve, beside another":      {mint(failure.Unavailable), []string{"a", "b"}, time.Second},
		"the only cell":                                  {mint(failure.Unreachable), []string{"a"}, 12 * time.Second},
		"a hub without a token of its own":               {mint(failure.NoHubToken), []string{"a", "b"}, 12 * time.Second},
		"a trail that can't be written, with no failure": {refusal.New(refusal.MintUnavailable, "trail").RetriedAfter(12 * time.Second), []string{"a", "b"}, 12 * time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := refusal.As(elsewhere(tt.err, trace(t, tt.cells...))); got == nil || got.RetryAfter != tt.want {
				t.Errorf("got %v, want to be asked again after %s", got, tt.want)
			}
		})
	}
	if fault := errors.New("boom"); elsewhere(fault, trace(t, "a", "b")) != fault { //nolint:errorlint // the very error
		t.Error("a fault was changed")
	}
}
