package rehearsal

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
)

// reach asks the hub's engine, and notes the cells that the policy permits.
// Without cells only what speaks against the request itself is a refusal.
func (a *Answer) reach(q Question, permission *placement.Permission, p *policy.Policy, now time.Time) *refusal.Refusal {
	fleet, refused := newFleet(q.Cells, now)
	if refused != nil {
		return refused
	}
	d, refused := fleet.engine.Decide(placement.Request{Workload: q.Workload, Dark: q.Dark, Explain: true}, permission, now)
	candidates, hidden := d.Trace.Reachable()
	a.OtherCells = hidden
	for _, c := range candidates {
		a.Cells = append(a.Cells, cellOf(c, fleet.rows[c.Cell], p, q.Ceiling))
	}
	switch {
	case refused == nil:
		return nil
	case refused.Code == refusal.NoPermittedCells && q.Cells == nil:
		return nil
	case refused.Code == refusal.NoEligibleCells:
		a.NoneTakes = refused.Message
		return nil
	default:
		return refused
	}
}

func cellOf(c v1alpha1.Candidate, row *registry.Cluster, p *policy.Policy, ceiling time.Duration) Cell {
	return Cell{
		Name:    c.Cell,
		State:   row.Spec.State,
		Takes:   c.Verdict != v1alpha1.VerdictExcluded,
		Message: c.Message,
		Life: life(policy.TTLRules{Cell: c.Cell, Env: row.Labels[registry.LabelEnv],
			Policy: p, Ceiling: ceiling}),
	}
}

// fleet is an engine over cells that are all fresh and empty.
type fleet struct {
	engine *placement.Engine
	rows   map[string]*registry.Cluster
}

func newFleet(cells []Row[registry.Cluster], now time.Time) (fleet, *refusal.Refusal) {
	index := capacity.New(capacity.Options{}, now)
	f := fleet{engine: placement.New(index, nil), rows: map[string]*registry.Cluster{}}
	rows := make([]*registry.Cluster, len(cells))
	for i, cell := range cells {
		rows[i] = withDefaults(cell.Object)
		f.rows[rows[i].Name] = rows[i]
	}
	f.engine.Register(rows)
	empty, refused := emptyReport(now)
	for _, row := range rows {
		if refused == nil {
			_, refused = index.Observe(row.Name, empty, now)
		}
	}
	return f, refused
}

// withDefaults is the row as an API server would store it.
func withDefaults(row *registry.Cluster) *registry.Cluster {
	row = row.DeepCopy()
	if row.Spec.State == "" {
		row.Spec.State = registry.StateLive
	}
	return row
}

// emptyReport is that of a cell with nothing on it.
func emptyReport(now time.Time) (capacity.Report, *refusal.Refusal) {
	return capacity.ParseReport(&v1alpha1.CellCapacitySpec{
		Sequence: 1, ObservedAt: metav1.NewMicroTime(now), Nodes: 1,
		Allocatable: v1alpha1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("1"),
			corev1.ResourceMemory: resource.MustParse("1Gi"),
			corev1.ResourcePods:   resource.MustParse("1"),
		},
	})
}
