package credential

import (
	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
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

// Reference is what a caller needs to reach the cell.
func Reference(cell *registryv1alpha1.Cluster) cellcastv1alpha1.CellReference {
	return cellcastv1alpha1.CellReference{Name: cell.Name, Endpoint: cell.Spec.Endpoint, CABundle: cell.Spec.CABundle}
}
