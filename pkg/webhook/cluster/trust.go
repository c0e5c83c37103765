package cluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// audience keeps the hub's tokens for one cell worthless everywhere else. A
// row that has always had a taken audience may still be changed otherwise, with
// a warning: it must be possible to drain it.
func (r rules) audience(row, old *registry.Cluster, others []*registry.Cluster, path *field.Path) (field.ErrorList, []string) {
	value := row.Spec.Trust.Audience
	if slices.Contains(r.hubAudiences, value) || strings.HasPrefix(value, "https://kubernetes.default.svc") {
		return field.ErrorList{invalid(path,
			"is an audience of the hub's own: a token that the hub shows to the cell would be good at the hub; use %s", conventional(row))}, nil
	}
	taken := slices.IndexFunc(others, func(c *registry.Cluster) bool { return c.Spec.Trust.Audience == value })
	if taken < 0 {
		return nil, nil
	}
	why := fmt.Sprintf("is also the audience of the Cluster %q: a token shown to one cell must be worthless at another; use %s",
		others[taken].Name, conventional(row))
	if old != nil && old.Spec.Trust.Audience == value {
		return nil, []string{fmt.Sprintf("%s %s", path, why)}
	}
	duplicate := field.Duplicate(path, field.OmitValueType{})
	duplicate.Detail = why
	return field.ErrorList{duplicate}, nil
}

// conventional is the audience that a cell has unless there's a reason.
func conventional(row *registry.Cluster) string { return "cellcast:cell:" + row.Name }
