// Package cluster is the admission of Cluster rows: what the schema can't say
// about an endpoint, a CA bundle, an audience and a reporter.
package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/webhook"
)

// Lister lists the stored Clusters; the generated ClusterLister is one. It is
// a cache: of two rows that are created at the same moment neither sees the
// other.
type Lister interface {
	List(selector labels.Selector) ([]*registry.Cluster, error)
}

// Path is where the webhook configuration sends Clusters.
const Path = "/admission/clusters"

// NewHandler returns the admission handler of Cluster. hubAudiences are what
// the hub itself accepts tokens for: its API server's issuer and audiences, and
// those of reports and pipelines. A cell must have none of them, or what the
// hub shows to the cell would be good at the hub.
func NewHandler(clusters Lister, hubAudiences []string, auditor webhook.Auditor) admission.Handler {
	kind := registry.SchemeGroupVersion.WithKind("Cluster").GroupKind()
	return webhook.NewHandler(kind, rules{clusters, hubAudiences}, auditor)
}

type rules struct {
	clusters     Lister
	hubAudiences []string
}

// Validate implements webhook.Validator.
func (r rules) Validate(_ context.Context, _ webhook.Request, row, old *registry.Cluster) (field.ErrorList, []string, error) {
	others, err := r.others(row.Name)
	if err != nil {
		return nil, nil, err
	}
	var errs field.ErrorList
	var warnings []string
	report := func(wrong field.ErrorList, unwise []string) {
		errs, warnings = append(errs, wrong...), append(warnings, unwise...)
	}
	spec := field.NewPath("spec")
	report(endpoint(row.Spec.Endpoint, others, spec.Child("endpoint")))
	report(certificates(row.Spec.CABundle, spec.Child("caBundle")), nil)
	report(r.audience(row, old, others, spec.Child("trust", "audience")))
	report(reporter(row.Spec.Reporter, others, spec.Child("reporter")))
	report(nil, webhook.EnvWarnings(row.Labels, "the cell"))
	return errs, warnings, nil
}

// others returns the stored Clusters but the one of that name.
func (r rules) others(name string) ([]*registry.Cluster, error) {
	all, err := r.clusters.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	others := make([]*registry.Cluster, 0, len(all))
	for _, c := range all {
		if c.Name != name {
			others = append(others, c)
		}
	}
	return others, nil
}

// invalid is an error that doesn't repeat the value.
func invalid(path *field.Path, format string, args ...any) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(format, args...))
}
