// Package placementpolicy is the admission of PlacementPolicy rows: one that
// would not compile is never stored, and one that reaches further than its
// writer may think is stored with a warning.
package placementpolicy

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/webhook"
)

// Compiler compiles a policy as the path of a request does; policy.Compiler is
// one.
type Compiler interface {
	Compile(*registry.PlacementPolicy) (*policy.Policy, field.ErrorList)
}

// Path is where the webhook configuration sends PlacementPolicies.
const Path = "/admission/placementpolicies"

// NewHandler returns the admission handler of PlacementPolicy. ceiling is the
// hub's --token-max-ttl, which no policy can lift.
func NewHandler(compiler Compiler, ceiling time.Duration, auditor webhook.Auditor) admission.Handler {
	kind := registry.SchemeGroupVersion.WithKind("PlacementPolicy").GroupKind()
	return webhook.NewHandler(kind, rules{compiler, ceiling}, auditor)
}

type rules struct {
	compiler Compiler
	ceiling  time.Duration
}

// Validate implements webhook.Validator.
func (r rules) Validate(_ context.Context, _ webhook.Request, row, _ *registry.PlacementPolicy) (field.ErrorList, []string, error) {
	if _, errs := r.compiler.Compile(row); len(errs) > 0 {
		return errs, nil, nil
	}
	spec := field.NewPath("spec")
	return nil, slices.Concat(
		wideSubjects(row.Spec.Subjects, spec.Child("subjects")),
		wideSelector(row.Spec.ClusterSelector, spec.Child("clusterSelector")),
		r.ineffective(row.Spec.TokenTTL, spec.Child("tokenTTL")),
	), nil
}

// wideSubjects warns of subjects that more callers match than a reader would
// guess.
func wideSubjects(subjects []registry.PolicySubject, path *field.Path) []string {
	var warnings []string
	for i, s := range subjects {
		switch {
		case s.Issuer == "" && len(s.Users) == 0 && len(s.Groups) == 0 && len(s.ServiceAccounts) == 0:
			warnings = append(warnings, fmt.Sprintf(
				"%s has an expression alone: it's asked about every caller of every issuer, and of the hub; name an issuer, users, groups or serviceAccounts too", path.Index(i)))
		case slices.Contains(s.Groups, "system:authenticated"):
			warnings = append(warnings, fmt.Sprintf(
				"%s names the group system:authenticated: everyone that the hub knows is in it", path.Index(i)))
		case slices.Contains(s.Groups, "system:serviceaccounts"):
			warnings = append(warnings, fmt.Sprintf(
				"%s names the group system:serviceaccounts: every ServiceAccount of the hub is in it", path.Index(i)))
		}
	}
	return warnings
}

func wideSelector(selector metav1.LabelSelector, path *field.Path) []string {
	if len(selector.MatchLabels) > 0 || len(selector.MatchExpressions) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s is empty: it permits every cell, those to come included", path)}
}

// ineffective warns of a tokenTTL that the hub's ceiling cuts.
func (r rules) ineffective(ttl *registry.TokenTTL, path *field.Path) []string {
	if ttl == nil {
		return nil
	}
	var warnings []string
	for _, bound := range []struct {
		name  string
		value *metav1.Duration
	}{{"default", ttl.Default}, {"max", ttl.Max}} {
		if bound.value != nil && bound.value.Duration > r.ceiling {
			warnings = append(warnings, fmt.Sprintf("%s has no effect above %s, the hub's --token-max-ttl", path.Child(bound.name), r.ceiling))
		}
	}
	return warnings
}
