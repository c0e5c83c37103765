package launchtarget

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// The fields that a list can be selected by.
const (
	fieldName       = "metadata.name"
	fieldPlaybook   = "playbook"
	fieldRepository = "repository"
)

// ConvertFieldLabel lets the fields of a selector through to List. The scheme of
// the API server has it for the kind LaunchTarget: without, the server takes
// metadata.name alone.
func ConvertFieldLabel(label, value string) (string, string, error) {
	switch label {
	case fieldName, fieldPlaybook, fieldRepository:
		return label, value, nil
	default:
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q, %q", label, fieldName, fieldPlaybook, fieldRepository)
	}
}

// fieldSelector is a field selector. The zero value selects everything.
type fieldSelector []fields.Requirement

// parseFields refuses a selector that this can't answer, rather than ignore a
// part of it.
func parseFields(selector fields.Selector) (fieldSelector, error) {
	for _, r := range selector.Requirements() {
		if _, _, err := ConvertFieldLabel(r.Field, r.Value); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if r.Field != fieldName && r.Operator == selection.NotEquals {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s can't be selected by !=: a target that is bound to nothing is for every %s", r.Field, r.Field))
		}
	}
	return fieldSelector(selector.Requirements()), nil
}

// matches reports whether all requirements do. What is bound to nothing is for
// every playbook and repository, as every cell is.
func (s fieldSelector) matches(item *cellcastv1alpha1.LaunchTarget) bool {
	return !slices.ContainsFunc(s, func(r fields.Requirement) bool {
		switch r.Field {
		case fieldPlaybook:
			return !binds(item.Status.Playbooks, r.Value)
		case fieldRepository:
			return !binds(item.Status.Repositories, r.Value)
		case fieldName:
			return (item.Name == r.Value) == (r.Operator == selection.NotEquals)
		default:
			return true
		}
	})
}

func binds(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }
