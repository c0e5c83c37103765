package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

// Amounts are whole quantities of resources: cpu in thousandths of a core,
// everything else in its own unit, such as bytes of memory. Each is above zero,
// and they are sorted by resource, each of which comes once. The zero value is
// nothing.
type Amounts []Amount

// Amount is a quantity of one resource.
type Amount struct {
	Resource corev1.ResourceName
	Value    int64
}

// maxResources is how many resources a list may name.
const maxResources = 64

// ParseAmounts reads the list at a field of a request. Fractions are rounded
// up, zeros left out. It refuses more than 64 resources, a name that is none,
// and a quantity that is negative or above 10^18 of its unit.
func ParseAmounts(field string, list map[corev1.ResourceName]resource.Quantity) (Amounts, *refusal.Refusal) {
	if len(list) > maxResources {
		return nil, refusal.Invalid(field, "names %d resources; at most %d are taken", len(list), maxResources)
	}
	amounts := make(Amounts, 0, len(list))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		value, wrong := parseQuantity(field, name, list[name])
		if wrong != nil {
			return nil, wrong
		}
		if value > 0 {
			amounts = append(amounts, Amount{name, value})
		}
	}
	return amounts, nil
}

// List returns the amounts as Kubernetes writes them.
func (a Amounts) List() v1alpha1.ResourceList {
	list := make(v1alpha1.ResourceList, len(a))
	for _, x := range a {
		list[x.Resource] = x.quantity()
	}
	return list
}

// String is the amount as kubectl would show it, such as 1500m or 2Gi.
func (a Amount) String() string {
	q := a.quantity()
	return q.String()
}

func (a Amount) quantity() resource.Quantity {
	switch a.Resource {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(a.Value, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(a.Value, resource.BinarySI)
	default:
		return *resource.NewQuantity(a.Value, resource.DecimalSI)
	}
}

// of returns how much there is of a resource.
func (a Amounts) of(name corev1.ResourceName) int64 {
	for i := range a {
		if a[i].Resource == name {
			return a[i].Value
		}
	}
	return 0
}

// add adds b to a.
func (a *Amounts) add(b Amounts) {
	for _, x := range b {
		i, found := slices.BinarySearchFunc(*a, x.Resource, byResource)
		if !found {
			*a = slices.Insert(*a, i, Amount{Resource: x.Resource})
		}
		(*a)[i].Value = saturatingSum((*a)[i].Value, x.Value)
	}
}

// cancel takes what a and b have in common off both.
func (a *Amounts) cancel(b *Amounts) {
	for i := range *a {
		x := &(*a)[i]
		if j, found := slices.BinarySearchFunc(*b, x.Resource, byResource); found {
			y := &(*b)[j]
			common := min(x.Value, y.Value)
			x.Value -= common
			y.Value -= common
		}
	}
	*a = slices.DeleteFunc(*a, isZero)
	*b = slices.DeleteFunc(*b, isZero)
}

func byResource(a Amount, name corev1.ResourceName) int { return cmp.Compare(a.Resource, name) }

func isZero(a Amount) bool { return a.Value == 0 }

// saturatingSum is a+b, or the largest int64 where that is less. Neither is
// negative.
func saturatingSum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
