// Package capacity takes the reports of cells: the create-only storage behind
// cells/capacity. Who may report for which cell was settled before a request
// gets here; what a report may say is settled by the index, which keeps the
// former report when it refuses one.
package capacity

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/rest/resource"
)

// Index keeps reports.
type Index interface {
	Observe(cell string, report capacity.Report, now time.Time) (capacity.Receipt, *refusal.Refusal)
}

// Relay hands reports on.
type Relay interface {
	Report(cell string, spec cellcastv1alpha1.CellCapacitySpec)
}

// Storage takes reports.
type Storage struct {
	resource.Cell

	Index Index
	// Relay tells the other replicas; it doesn't wait for them.
	Relay Relay
	Audit audit.Sink
	Now   func() time.Time
}

var (
	_ rest.Storage              = &Storage{}
	_ rest.Scoper               = &Storage{}
	_ rest.SingularNameProvider = &Storage{}
	_ rest.NamedCreater         = &Storage{}
)

// New returns an empty CellCapacity.
func (*Storage) New() runtime.Object { return &cellcastv1alpha1.CellCapacity{} }

// Create takes the report of the named cell. Only a refused one is in the
// audit trail: a report every half minute from each cell says nothing there.
func (s *Storage) Create(ctx context.Context, name string, obj runtime.Object, _ rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	report, ok := obj.(*cellcastv1alpha1.CellCapacity)
	if !ok {
		return nil, fmt.Errorf("a report of capacity was expected, not %T", obj)
	}
	c, err := call.From(ctx, s.Now())
	if err != nil {
		return nil, err
	}
	receipt, refused := s.take(name, report, options != nil && dryrun.IsDryRun(options.DryRun), c.Started)
	if refused != nil {
		record := c.Record(audit.EventReportRefused)
		record.Cell = name
		call.End(&record, refused, c.Started, s.Now())
		_ = s.Audit.Write(record) // nothing is issued, and the loss is counted
		return nil, c.Answer(ctx, refused)
	}
	return &cellcastv1alpha1.CellCapacity{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       report.Spec,
		Status: cellcastv1alpha1.CellCapacityStatus{
			ReceivedAt: metav1.NewMicroTime(receipt.ReceivedAt),
			StaleAt:    metav1.NewMicroTime(receipt.StaleAt),
		},
	}, nil
}

func (s *Storage) take(name string, report *cellcastv1alpha1.CellCapacity, dry bool, now time.Time) (capacity.Receipt, *refusal.Refusal) {
	if report.Name != "" && report.Name != name {
		return capacity.Receipt{}, refusal.Invalid("metadata.name", "is %q, and the report was sent for cell %q: send it under the name of its cell", report.Name, name)
	}
	parsed, refused := capacity.ParseReport(&report.Spec)
	if refused != nil || dry {
		return capacity.Receipt{}, refused
	}
	receipt, refused := s.Index.Observe(name, parsed, now)
	if refused == nil {
		s.Relay.Report(name, report.Spec)
	}
	return receipt, refused
}
