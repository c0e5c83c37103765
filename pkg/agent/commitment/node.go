package commitment

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// controlPlaneTaint is the key of the taint by which Kubernetes keeps ordinary
// pods off a control plane.
const controlPlaneTaint = "node-role.kubernetes.io/control-plane"

// Node is what counts of a node.
type Node struct {
	name        string
	allocatable amounts // nil for a node that isn't counted
}

// OfNode returns what counts of a node. Not counted, together with the pods on
// it, is a node that ordinary pods can't land on:
//
//   - it's cordoned (spec.unschedulable, or the taint that stands for it);
//   - its Ready condition isn't True;
//   - it carries the taint of a control plane with NoSchedule or NoExecute;
//   - it doesn't offer cpu, memory and pods, each above zero, as one that has
//     only just registered.
//
// Any other taint leaves a node counted. Operators taint a node for the sake
// of the pods that tolerate it, GPU nodes above all: the workload to come may
// be one of these, and the agent can't know. What Kubernetes taints for a
// pressure passes by itself.
func OfNode(node *corev1.Node) Node {
	if !takesPods(node) {
		return Node{name: node.Name}
	}
	return Node{name: node.Name, allocatable: amountsOf(node.Status.Allocatable)}
}

func takesPods(node *corev1.Node) bool {
	if node.Spec.Unschedulable || !isReady(node) || slices.ContainsFunc(node.Spec.Taints, keepsPodsOff) {
		return false
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if quantity := node.Status.Allocatable[name]; quantity.Sign() <= 0 {
			return false
		}
	}
	return true
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func keepsPodsOff(taint corev1.Taint) bool {
	if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
		return false
	}
	return taint.Key == corev1.TaintNodeUnschedulable || taint.Key == controlPlaneTaint
}
