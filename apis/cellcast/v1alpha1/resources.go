package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	strictjson "sigs.k8s.io/json"
)

// ResourceList is quantities by the name of the resource, as in a pod's
// requests. It is a type of its own because of how it's read: a quantity may
// have an exponent of two billion, which takes a server hours and gigabytes to
// round, before any validation runs. Here a quantity has at most 40 characters
// and an exponent of two digits.
type ResourceList corev1.ResourceList

const (
	maxQuantity  = 40
	maxResources = 64
)

// hugeExponent is an exponent of more than two digits.
var hugeExponent = regexp.MustCompile(`[eE][+-]?0*[0-9]{3,}`)

// UnmarshalJSON reads at most 64 resources. The error quotes no quantity.
func (l *ResourceList) UnmarshalJSON(data []byte) error {
	var raw map[corev1.ResourceName]json.RawMessage
	strict, err := strictjson.UnmarshalStrict(data, &raw)
	if err := errors.Join(append(strict, err)...); err != nil {
		return fmt.Errorf("resources: %w", err)
	}
	if len(raw) > maxResources {
		return fmt.Errorf("resources: %d are named, and at most %d are taken", len(raw), maxResources)
	}
	for name, quantity := range raw {
		if len(quantity) > maxQuantity+2 || hugeExponent.Match(quantity) {
			return fmt.Errorf("resources: the quantity of %.64q is out of range: write it like 500m or 4Gi", name)
		}
	}
	var list corev1.ResourceList
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("resources: %w", err)
	}
	*l = ResourceList(list)
	return nil
}
