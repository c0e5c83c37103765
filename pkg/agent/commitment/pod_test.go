package commitment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatAPodHolds(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := func(name string, requests ...string) corev1.Container {
		c := container(name, requests...)
		c.RestartPolicy = &always
		return c
	}
	on := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := runningPod("a", container("c", "cpu", "1", "memory", "1Gi"))
		change(pod)
		return pod
	}
	nothing := map[string]string{"cpu": "0", "memory": "0", "pods": "0"}

	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want map[string]string
	}{
		"containers add up": {
			runningPod("a", container("c", "cpu", "1", "memory", "1Gi"), container("d", "cpu", "500m")),
			map[string]string{"cpu": "1500m", "memory": "1Gi", "pods": "1"},
		},
		"a pod without requests holds one of pods": {
			runningPod("a", corev1.Container{Name: "c"}),
			map[string]string{"cpu": "0", "memory": "0", "pods": "1"},
		},
		"limits alone hold nothing": {
			runningPod("a", corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Limits: list("cpu", "2")}}),
			map[string]string{"cpu": "0", "memory": "0", "pods": "1"},
		},
		"an init container counts where its peak is above the containers": {
			on(func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{container("i", "cpu", "3", "memory", "512Mi"), container("j", "cpu", "2")}
			}),
			map[string]string{"cpu": "3", "memory": "1Gi", "pods": "1"},
		},
		"a sidecar counts with the containers": {
			on(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{sidecar("s", "cpu", "250m")} }),
			map[string]string{"cpu": "1250m", "memory": "1Gi", "pods": "1"},
		},
		"an init container runs beside the sidecars before it": {
			on(func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{sidecar("s", "cpu", "500m"), container("i", "cpu", "2")}
			}),
			map[string]string{"cpu": "2500m", "memory": "1Gi", "pods": "1"},
		},
		"an init container runs before the sidecars after it": {
			on(func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{container("i", "cpu", "2"), sidecar("s", "cpu", "500m")}
			}),
			map[string]string{"cpu": "2", "memory": "1Gi", "pods": "1"},
		},
		"overhead of the runtime class is added": {
			on(func(p *corev1.Pod) { p.Spec.Overhead = list("cpu", "100m", "memory", "64Mi") }),
			map[string]string{"cpu": "1100m", "memory": "1088Mi", "pods": "1"},
		},
		"requests of the pod stand in for those of its containers": {
			on(func(p *corev1.Pod) {
				p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "3")}
			}),
			map[string]string{"cpu": "3", "memory": "1Gi", "pods": "1"},
		},
		"a resize upwards counts when it's asked for": {
			on(func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = list("cpu", "2", "memory", "1Gi")
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: list("cpu", "1", "memory", "1Gi")}}
			}),
			map[string]string{"cpu": "2", "memory": "1Gi", "pods": "1"},
		},
		"a resize downwards counts when it's done": {
			on(func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = list("cpu", "500m", "memory", "1Gi")
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: list("cpu", "1", "memory", "1Gi")}}
			}),
			map[string]string{"cpu": "1", "memory": "1Gi", "pods": "1"},
		},
		"an infeasible resize doesn't count": {
			on(func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = list("cpu", "64", "memory", "1Gi")
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: list("cpu", "1", "memory", "1Gi")}}
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
			}),
			map[string]string{"cpu": "1", "memory": "1Gi", "pods": "1"},
		},
		"a resize of the pod itself counts until it's done": {
			on(func(p *corev1.Pod) {
				p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "2")}
				p.Status.AllocatedResources = list("cpu", "3")
				p.Status.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "3")}
			}),
			map[string]string{"cpu": "3", "memory": "1Gi", "pods": "1"},
		},
		"what a claim takes of the node's own resources counts": {
			on(func(p *corev1.Pod) {
				quantity := list("memory", "2Gi")["memory"]
				p.Status.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{{
					Containers: []string{"c"},
					Mapping:    []corev1.NodeAllocatableMappedResources{{Name: "memory", Quantity: &quantity}},
				}}
			}),
			map[string]string{"cpu": "1", "memory": "3Gi", "pods": "1"},
		},
		"a pod that was bound and hasn't started counts": {
			on(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
			map[string]string{"cpu": "1", "memory": "1Gi", "pods": "1"},
		},
		"a pod that is being deleted counts": {
			on(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }),
			map[string]string{"cpu": "1", "memory": "1Gi", "pods": "1"},
		},
		"a pod whose node is lost counts until its phase ends": {
			on(func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }),
			map[string]string{"cpu": "1", "memory": "1Gi", "pods": "1"},
		},
		"a pod that succeeded holds nothing": {on(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), nothing},
		"a pod that failed holds nothing":    {on(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), nothing},
		"a pod without a node holds nothing": {on(func(p *corev1.Pod) { p.Spec.NodeName = ""; p.Status.Phase = corev1.PodPending }), nothing},
	} {
		t.Run(name, func(t *testing.T) {
			got := sumOf([]*corev1.Node{readyNode("a")}, []*corev1.Pod{test.pod})
			if diff := cmp.Diff(test.want, got.Requested); diff != "" {
				t.Errorf("requested (-want +got):\n%s", diff)
			}
		})
	}
}
