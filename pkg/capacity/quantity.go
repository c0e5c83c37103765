package capacity

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"cellcast.io/cellcast/pkg/refusal"
)

// A quantity may have any exponent between these; ParseQuantity itself rounds
// to 10^-9. Outside of them even comparing it could take minutes, because its
// digits are written out.
const (
	minExponent = -9
	maxExponent = 18
)

// maxValue is the largest amount, in its unit. Nine of them can be added
// without leaving int64.
const maxValue = 1_000_000_000_000_000_000

// parseQuantity reads the quantity of one resource of a list: zero or more, in
// the unit that Amounts has for the resource.
func parseQuantity(field string, name corev1.ResourceName, q resource.Quantity) (int64, *refusal.Refusal) {
	if wrong := content.IsLabelKey(string(name)); len(wrong) > 0 {
		return 0, refusal.Invalid(field, "names a resource that can't be one: %s", wrong[0])
	}
	field = fmt.Sprintf("%s[%s]", field, name)
	if q.Sign() < 0 {
		return 0, refusal.Invalid(field, "must not be negative")
	}
	unit := resource.Scale(0)
	if name == corev1.ResourceCPU {
		unit = resource.Milli
	}
	value, ok := whole(q, unit)
	if !ok {
		return 0, refusal.Invalid(field, "is out of range: it must not exceed 10^%d", maxExponent+int(unit))
	}
	return value, nil
}

// whole returns the quantity in units of 10^unit, rounded up. It is false for
// one above maxValue, where ScaledValue wraps around or answers zero.
func whole(q resource.Quantity, unit resource.Scale) (int64, bool) {
	if q.IsZero() {
		return 0, true
	}
	exponent := -int(q.AsDec().Scale())
	if exponent < minExponent || exponent > maxExponent {
		return 0, false
	}
	if q.Cmp(*resource.NewScaledQuantity(maxValue, unit)) > 0 {
		return 0, false
	}
	return q.ScaledValue(unit), true
}
