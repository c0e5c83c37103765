package capacity

import (
	"time"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// Description is what the index knows of a cell.
type Description struct {
	// Health says what the last report is worth.
	Health v1alpha1.CapacityHealth
	// ReceivedAt is when it was received; zero when there was none.
	ReceivedAt time.Time
	// Utilisation is how full the cell is, with what was placed since. It's
	// unknown unless the report is fresh and has a node that takes pods.
	Utilisation Utilisation
	// RevocableNamespaces are those in which the cell's agent ends credentials,
	// sorted, by the last report. They mustn't be changed.
	RevocableNamespaces []string
}

// Describe returns what is known of a cell. It is false for one that isn't
// registered.
func (ix *Index) Describe(name string, now time.Time) (Description, bool) {
	view := ix.At(now)
	defer view.Close()
	slot, registered := ix.slots[name]
	if !registered {
		return Description{}, false
	}
	d := Description{Utilisation: view.Utilisation(slot, &Demand{}), RevocableNamespaces: ix.cells[slot].report.revocable}
	d.Health, d.ReceivedAt = view.Health(slot)
	return d, true
}
