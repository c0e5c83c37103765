// Package change records what the reconcilers change of a row: which condition
// went from what to what.
package change

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/pkg/audit"
)

// Record writes that the conditions of a row were changed. Nothing is written
// where no status and no reason differs: a message alone is no change of state.
// The record comes after the change, so an error means a change that is in no
// trail.
func Record(trail audit.Sink, record audit.Record, before, after []metav1.Condition, now time.Time) error {
	record.Changes = Between(before, after)
	if len(record.Changes) == 0 {
		return nil
	}
	record.Time, record.Event, record.Outcome = now, audit.EventRowChanged, audit.OutcomeAllowed
	return trail.Write(record)
}

// Between returns the conditions that differ, in the order of their types.
func Between(before, after []metav1.Condition) []audit.Change {
	var changes []audit.Change
	for _, now := range after {
		change := audit.Change{Condition: now.Type, To: string(now.Status), ToReason: now.Reason}
		if was := meta.FindStatusCondition(before, now.Type); was != nil {
			change.From, change.FromReason = string(was.Status), was.Reason
		}
		if change.From != change.To || change.FromReason != change.ToReason {
			changes = append(changes, change)
		}
	}
	slices.SortFunc(changes, func(a, b audit.Change) int { return strings.Compare(a.Condition, b.Condition) })
	return changes
}
