// Package commitment counts how much of a cell is given away: what its nodes
// can take, and what the requests of the pods on them hold. Requests count,
// not usage, because the scheduler places on requests.
//
// It counts the nodes that ordinary pods can land on (OfNode says which), and
// of the pods those that are bound to one of these nodes and not terminal. A
// pod that still waits for a node holds nothing: the scheduler gives it
// nothing until it binds it, a gated or queued pod may wait for days, and the
// room of a placement that was just made is kept by the hub's reservation.
//
// Devices that pods hold through ResourceClaims are in nobody's requests and
// in no node's allocatable: they aren't counted.
package commitment

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Total is the commitment of a cell at one moment.
type Total struct {
	// Nodes is the number of nodes that were counted.
	Nodes int32
	// Allocatable is the sum over these nodes, without the resources of which
	// there are none. With at least one node it has cpu, memory and pods, each
	// above zero; with none it's empty.
	Allocatable corev1.ResourceList
	// Requested is the sum over the pods on these nodes. It has the resources
	// of Allocatable, no more and no less, and may exceed them.
	Requested corev1.ResourceList
}

// Sum adds up a cell. The order of nodes and pods doesn't matter; a name of a
// node must not come twice.
func Sum(nodes iter.Seq[Node], pods iter.Seq[Pod]) Total {
	var count int32
	counted := map[string]bool{}
	allocatable, requested := sums{}, sums{}

	for node := range nodes {
		if node.allocatable == nil {
			continue
		}
		count++
		counted[node.name] = true
		allocatable.add(node.allocatable)
	}
	for pod := range pods {
		if counted[pod.node] {
			requested.add(pod.requests)
		}
	}

	total := Total{Nodes: count, Allocatable: corev1.ResourceList{}, Requested: corev1.ResourceList{}}
	for name, quantity := range allocatable {
		total.Allocatable[name] = *quantity
		total.Requested[name] = requested.of(name)
	}
	return total
}

// amounts are quantities of resources, none of them zero. A slice takes a
// third of the memory of the map of a ResourceList, and there is one per pod.
type amounts []amount

type amount struct {
	name     corev1.ResourceName
	quantity resource.Quantity
}

func amountsOf(list corev1.ResourceList) amounts {
	result := make(amounts, 0, len(list)+1)
	for name, quantity := range list {
		if quantity.Sign() > 0 {
			result = append(result, amount{name, quantity})
		}
	}
	return result
}

type sums map[corev1.ResourceName]*resource.Quantity

func (s sums) add(list amounts) {
	for _, a := range list {
		if sum, ok := s[a.name]; ok {
			sum.Add(a.quantity)
			continue
		}
		first := a.quantity.DeepCopy()
		s[a.name] = &first
	}
}

func (s sums) of(name corev1.ResourceName) resource.Quantity {
	if sum, ok := s[name]; ok {
		return *sum
	}
	return resource.Quantity{Format: resource.DecimalSI}
}
