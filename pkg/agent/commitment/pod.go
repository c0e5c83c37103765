package commitment

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Pod is what counts of a pod.
type Pod struct {
	node     string // empty for a pod that holds nothing
	requests amounts
}

// OfPod returns what counts of a pod: nothing when it's terminal or has no
// node, else its requests as the scheduler of Kubernetes 1.37 counts them, and
// one of "pods".
//
//   - Containers add up. Init containers that end count by their peak,
//     sidecars (restartPolicy Always) for the pod's whole life.
//   - Requests of the pod itself stand in for those of its containers.
//   - Overhead of the runtime class is added.
//   - While a resize in place is under way the greater of old and new counts;
//     an infeasible one counts what the pod has.
//   - What ResourceClaims take of the node's own cpu and memory is added.
//   - A pod that is being deleted counts until it's gone.
//
// What a cell's version doesn't know of these, it leaves out of the pod, so
// one way of counting suits every cell.
func OfPod(pod *corev1.Pod) Pod {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return Pod{}
	}
	requests := amountsOf(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
		UseDRANodeAllocatableResourceClaimStatus:       true,
	}))
	one := amount{corev1.ResourcePods, *resource.NewQuantity(1, resource.DecimalSI)}
	return Pod{node: pod.Spec.NodeName, requests: append(requests, one)}
}
