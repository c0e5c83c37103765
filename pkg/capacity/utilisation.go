package capacity

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Utilisation is how full a cell is in its fullest dimension. The zero value
// means that it isn't known.
type Utilisation struct {
	// Resource is the fullest dimension, the first by name of several.
	Resource corev1.ResourceName
	// Ratio is requested to allocatable: 1 is full, and more is possible.
	Ratio float64
}

// Percent is the utilisation in percent, rounded to a tenth, such as 93.4. It
// is empty where the utilisation isn't known.
func (u Utilisation) Percent() string {
	if u.Resource == "" {
		return ""
	}
	return strconv.FormatFloat(100*u.Ratio, 'f', 1, 64)
}

// Shortage is the first resource, by name, that a cell has too little of.
type Shortage struct {
	Resource corev1.ResourceName
	// Asked is how much is asked for, Free how much there is of Allocatable.
	// Both are zero where the cell has no such resource.
	Asked, Free, Allocatable int64
}

// String says the shortage in a sentence.
func (s Shortage) String() string {
	amount := func(value int64) Amount { return Amount{s.Resource, value} }
	if s.Allocatable == 0 {
		return fmt.Sprintf("%s: %s asked for, the cell has none", s.Resource, amount(s.Asked))
	}
	return fmt.Sprintf("%s: %s asked for, %s of %s free", s.Resource, amount(s.Asked), amount(s.Free), amount(s.Allocatable))
}
