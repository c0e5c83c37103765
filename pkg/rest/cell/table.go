package cell

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// ConvertToTable is what kubectl get cells prints.
func (s *Storage) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "The cell's name."},
		{Name: "State", Type: "string", Description: "LIVE, DARK or DRAINING."},
		{Name: "Capacity", Type: "string", Description: "Fresh, Stale or Unknown; only a Fresh cell is chosen."},
		{Name: "Utilisation", Type: "string", Description: "How full the worst dimension is, in percent of allocatable."},
		{Name: "Worst", Type: "string", Description: "That dimension."},
		{Name: "Reported", Type: "string", Description: "The age of the last report."},
		{Name: "Policies", Type: "string", Description: "The caller's policies that permit the cell."},
	}}
	if list, err := meta.ListAccessor(object); err == nil {
		out.ResourceVersion = list.GetResourceVersion()
	}
	now := s.Now()
	var err error
	out.Rows, err = table.MetaToTableRow(object, func(obj runtime.Object, _ metav1.Object, name, _ string) ([]any, error) {
		status := obj.(*cellcastv1alpha1.Cell).Status
		return []any{name, status.State, string(status.Capacity), percent(status.UtilisationPercent),
			dash(status.WorstResource), age(status.ReportedAt, now), dash(strings.Join(status.Policies, ","))}, nil
	})
	return out, err
}

func age(at *metav1.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	return duration.HumanDuration(now.Sub(at.Time)) + " ago"
}

func percent(s string) string {
	if s == "" {
		return "-"
	}
	return s + "%"
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
