package capacity

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

// Report is how full a cell says that it is. It comes from ParseReport and
// can't hold a figure that makes no sense.
type Report struct {
	sequence   int64
	observedAt time.Time
	dimensions []dimension // by resource; none when no node takes pods
	revocable  []string    // the namespaces in which the agent ends credentials, sorted
}

// dimension is one resource of a cell. More may be requested than there is,
// after a node has left.
type dimension struct {
	resource               corev1.ResourceName
	allocatable, requested int64
}

// ParseReport reads a report. It refuses, with InvalidRequest and the field,
// whatever contradicts the documentation of CellCapacitySpec; nothing is
// clamped, because a clamped figure would steer placements and its agent would
// never learn of it.
func ParseReport(spec *v1alpha1.CellCapacitySpec) (Report, *refusal.Refusal) {
	switch {
	case spec.Sequence <= 0:
		return Report{}, refusal.Invalid("spec.sequence", "must be above zero")
	case spec.ObservedAt.IsZero():
		return Report{}, refusal.Invalid("spec.observedAt", "must say when the figures were taken")
	case spec.Nodes < 0:
		return Report{}, refusal.Invalid("spec.nodes", "must not be negative")
	case spec.Nodes == 0 && len(spec.Allocatable) > 0:
		return Report{}, refusal.Invalid("spec.allocatable", "must be empty when no node takes pods")
	}
	dimensions, wrong := parseDimensions(spec)
	if wrong != nil {
		return Report{}, wrong
	}
	revocable, wrong := parseNamespaces("spec.revocableNamespaces", spec.RevocableNamespaces)
	if wrong != nil {
		return Report{}, wrong
	}
	return Report{sequence: spec.Sequence, observedAt: spec.ObservedAt.Time, dimensions: dimensions, revocable: revocable}, nil
}

// maxNamespaces is how many namespaces a report names at most.
const maxNamespaces = 64

func parseNamespaces(field string, names []string) ([]string, *refusal.Refusal) {
	if len(names) > maxNamespaces {
		return nil, refusal.Invalid(field, "has %d entries and at most %d are taken", len(names), maxNamespaces)
	}
	for _, name := range names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return nil, refusal.Invalid(field, "holds something that isn't the name of a namespace")
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names))), nil
}

func parseDimensions(spec *v1alpha1.CellCapacitySpec) ([]dimension, *refusal.Refusal) {
	allocatable, wrong := ParseAmounts("spec.allocatable", spec.Allocatable)
	if wrong != nil {
		return nil, wrong
	}
	requested, wrong := ParseAmounts("spec.requested", spec.Requested)
	if wrong != nil {
		return nil, wrong
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Requested)) {
		if _, known := spec.Allocatable[name]; !known {
			return nil, refusal.Invalid("spec.requested["+string(name)+"]", "is not a resource of spec.allocatable")
		}
	}
	if spec.Nodes > 0 {
		for _, name := range core() {
			if allocatable.of(name) == 0 {
				return nil, refusal.Invalid("spec.allocatable["+string(name)+"]", "must be above zero when a node takes pods")
			}
		}
	}
	// A resource of which there is nothing is no dimension: it neither fills
	// the cell up nor makes it look empty.
	dimensions := make([]dimension, len(allocatable))
	for i, a := range allocatable {
		dimensions[i] = dimension{a.Resource, a.Value, requested.of(a.Resource)}
	}
	return dimensions, nil
}

// takesPods reports whether the cell has a node for them.
func (r *Report) takesPods() bool { return len(r.dimensions) > 0 }

// dimension returns the dimension of a resource, if there is one.
func (r *Report) dimension(name corev1.ResourceName) (dimension, bool) {
	for i := range r.dimensions {
		if r.dimensions[i].resource == name {
			return r.dimensions[i], true
		}
	}
	return dimension{}, false
}

// growth is what more is requested than in the former report, of the resources
// that both have.
func (r *Report) growth(former *Report) Amounts {
	var more Amounts
	for _, is := range r.dimensions {
		if was, known := former.dimension(is.resource); known && is.requested > was.requested {
			more = append(more, Amount{is.resource, is.requested - was.requested})
		}
	}
	return more
}
