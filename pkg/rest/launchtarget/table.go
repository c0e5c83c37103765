package launchtarget

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// ConvertToTable is what kubectl get launchtargets prints.
func (s *Storage) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "The cell's name, or target:<uid> of a brought target."},
		{Name: "Kind", Type: "string", Description: "Cluster or ClusterTarget."},
		{Name: "Where", Type: "string", Description: "The cell, or namespace/name of the ClusterTarget."},
		{Name: "State", Type: "string", Description: "LIVE, DARK or DRAINING of a cell; of a brought target what its status says."},
		{Name: "Launchable", Type: "boolean", Description: "Whether something could be launched there now; status.reason says why not."},
		{Name: "Owner", Type: "string", Description: "user:NAME or group:NAME of a brought target."},
		{Name: "Capabilities", Type: "string", Priority: 1, Description: "What a brought target is good for."},
		{Name: "Secrets", Type: "string", Priority: 1, Description: "Which secrets a launch there may use."},
	}}
	if list, err := meta.ListAccessor(object); err == nil {
		out.ResourceVersion = list.GetResourceVersion()
	}
	var err error
	out.Rows, err = table.MetaToTableRow(object, func(obj runtime.Object, _ metav1.Object, name, _ string) ([]any, error) {
		status := obj.(*cellcastv1alpha1.LaunchTarget).Status
		where := name
		if status.Target != nil {
			where = status.Target.Namespace + "/" + status.Target.Name
		}
		return []any{name, string(status.Kind), where, status.State, status.Launchable, dash(status.Owner),
			dash(strings.Join(status.Capabilities, ",")), status.SecretRule}, nil
	})
	return out, err
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
