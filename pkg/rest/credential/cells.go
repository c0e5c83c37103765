package credential

import (
	"context"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/refusal"
)

// Cells gives the client of a cell.
type Cells func(*registryv1alpha1.Cluster) (mint.Cell, error)

// Client returns the client of the cell. It refuses a row that no client can be
// made of.
func (c Cells) Client(row *registryv1alpha1.Cluster) (mint.Cell, error) {
	cell, err := c(row)
	if err != nil {
		return nil, refusal.New(refusal.MintFailed,
			"the hub can't make a client of cell %s from its row: check the endpoint and caBundle of its Cluster", row.Name).Because(err)
	}
	return cell, nil
}

// At is the cell as the place of a credential. The row must not be changed.
func (c Cells) At(row *registryv1alpha1.Cluster) Place { return place{row, c} }

// place is a cell.
type place struct {
	row   *registryv1alpha1.Cluster
	cells Cells
}

func (p place) Name() string                              { return p.row.Name }
func (p place) Env() string                               { return p.row.Labels[registryv1alpha1.LabelEnv] }
func (p place) Describe(record *audit.Record)             { record.Cell = p.row.Name }
func (p place) Client(context.Context) (mint.Cell, error) { return p.cells.Client(p.row) }

// Reference is what a caller needs to reach the cell.
func Reference(cell *registryv1alpha1.Cluster) cellcastv1alpha1.CellReference {
	return cellcastv1alpha1.CellReference{Name: cell.Name, Endpoint: cell.Spec.Endpoint, CABundle: cell.Spec.CABundle}
}
