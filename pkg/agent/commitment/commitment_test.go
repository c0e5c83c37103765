package commitment

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// figures are a Total with its quantities written out.
type figures struct {
	Nodes                  int32
	Allocatable, Requested map[string]string
}

func sumOf(nodes []*corev1.Node, pods []*corev1.Pod) figures {
	var n []Node
	for _, node := range nodes {
		n = append(n, OfNode(node))
	}
	var p []Pod
	for _, pod := range pods {
		p = append(p, OfPod(pod))
	}
	total := Sum(slices.Values(n), slices.Values(p))
	return figures{total.Nodes, written(total.Allocatable), written(total.Requested)}
}

func written(list corev1.ResourceList) map[string]string {
	result := map[string]string{}
	for name, quantity := range list {
		result[string(name)] = quantity.String()
	}
	return result
}

// list reads pairs of resource and quantity.
func list(pairs ...string) corev1.ResourceList {
	result := corev1.ResourceList{}
	for pair := range slices.Chunk(pairs, 2) {
		result[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
	}
	return result
}

func readyNode(name string, allocatable ...string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Allocatable: list(append([]string{"cpu", "4", "memory", "8Gi", "pods", "110"}, allocatable...)...),
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			},
		},
	}
}

func runningPod(node string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: node, Containers: containers},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func container(name string, requests ...string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list(requests...)}}
}

func TestSum(t *testing.T) {
	for name, test := range map[string]struct {
		nodes []*corev1.Node
		pods  []*corev1.Pod
		want  figures
	}{
		"a cell without nodes has nothing": {
			pods: []*corev1.Pod{runningPod("gone", container("c", "cpu", "1"))},
			want: figures{0, map[string]string{}, map[string]string{}},
		},
		"nodes and the pods on them add up, one of pods for each": {
			nodes: []*corev1.Node{readyNode("a"), readyNode("b")},
			pods: []*corev1.Pod{
				runningPod("a", container("c", "cpu", "1500m", "memory", "1Gi")),
				runningPod("b", container("c", "cpu", "250m", "memory", "512Mi")),
				runningPod("b"),
			},
			want: figures{2,
				map[string]string{"cpu": "8", "memory": "16Gi", "pods": "220"},
				map[string]string{"cpu": "1750m", "memory": "1536Mi", "pods": "3"}},
		},
		"a cell without pods requests zero of all it has": {
			nodes: []*corev1.Node{readyNode("a", "nvidia.com/gpu", "8")},
			want: figures{1,
				map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "8"},
				map[string]string{"cpu": "0", "memory": "0", "pods": "0", "nvidia.com/gpu": "0"}},
		},
		"GPUs count like any other resource": {
			nodes: []*corev1.Node{readyNode("a"), readyNode("gpu", "nvidia.com/gpu", "8")},
			pods:  []*corev1.Pod{runningPod("gpu", container("c", "nvidia.com/gpu", "3"))},
			want: figures{2,
				map[string]string{"cpu": "8", "memory": "16Gi", "pods": "220", "nvidia.com/gpu": "8"},
				map[string]string{"cpu": "0", "memory": "0", "pods": "1", "nvidia.com/gpu": "3"}},
		},
		"a request for what no node offers is left out": {
			nodes: []*corev1.Node{readyNode("a")},
			pods:  []*corev1.Pod{runningPod("a", container("c", "example.com/fpga", "1"))},
			want: figures{1,
				map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110"},
				map[string]string{"cpu": "0", "memory": "0", "pods": "1"}},
		},
		"a resource of which all nodes have none is left out": {
			nodes: []*corev1.Node{readyNode("a", "hugepages-2Mi", "0", "hugepages-1Gi", "0")},
			want: figures{1,
				map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110"},
				map[string]string{"cpu": "0", "memory": "0", "pods": "0"}},
		},
		"requests may exceed what there is": {
			nodes: []*corev1.Node{readyNode("a")},
			pods:  []*corev1.Pod{runningPod("a", container("c", "cpu", "5"))},
			want: figures{1,
				map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110"},
				map[string]string{"cpu": "5", "memory": "0", "pods": "1"}},
		},
		"a pod on a node that isn't there counts nothing": {
			nodes: []*corev1.Node{readyNode("a")},
			pods:  []*corev1.Pod{runningPod("deleted", container("c", "cpu", "1"))},
			want: figures{1,
				map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110"},
				map[string]string{"cpu": "0", "memory": "0", "pods": "0"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, sumOf(test.nodes, test.pods)); diff != "" {
				t.Errorf("total (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSumLeavesItsInputAlone(t *testing.T) {
	node := OfNode(readyNode("a"))
	// A sum that exceeds an int64 is kept behind a pointer.
	pod := OfPod(runningPod("a", container("c", "cpu", "1", "memory", "7Ei"), container("d", "memory", "7Ei")))
	sum := func() figures {
		total := Sum(slices.Values([]Node{node}), slices.Values([]Pod{pod, pod}))
		return figures{total.Nodes, written(total.Allocatable), written(total.Requested)}
	}
	if diff := cmp.Diff(sum(), sum()); diff != "" {
		t.Errorf("the second sum differs from the first:\n%s", diff)
	}
}
