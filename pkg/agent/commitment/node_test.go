package commitment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestWhichNodesCount(t *testing.T) {
	tainted := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
	}
	ready := func(status corev1.ConditionStatus) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		}
	}
	without := func(name corev1.ResourceName) func(*corev1.Node) {
		return func(n *corev1.Node) { delete(n.Status.Allocatable, name) }
	}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		counts bool
	}{
		"a ready node counts":                              {func(*corev1.Node) {}, true},
		"a cordoned one doesn't":                           {func(n *corev1.Node) { n.Spec.Unschedulable = true }, false},
		"one tainted as unschedulable doesn't":             {tainted("node.kubernetes.io/unschedulable", corev1.TaintEffectNoSchedule), false},
		"one that isn't ready doesn't":                     {ready(corev1.ConditionFalse), false},
		"one that is lost doesn't":                         {ready(corev1.ConditionUnknown), false},
		"one that never said doesn't":                      {func(n *corev1.Node) { n.Status.Conditions = nil }, false},
		"a control plane that takes no pods doesn't":       {tainted("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoSchedule), false},
		"a control plane that evicts pods doesn't":         {tainted("node-role.kubernetes.io/control-plane", corev1.TaintEffectNoExecute), false},
		"a control plane that only prefers no pods counts": {tainted("node-role.kubernetes.io/control-plane", corev1.TaintEffectPreferNoSchedule), true},
		"one kept for GPU pods counts":                     {tainted("nvidia.com/gpu", corev1.TaintEffectNoSchedule), true},
		"one under a pressure that passes counts":          {tainted("node.kubernetes.io/memory-pressure", corev1.TaintEffectNoSchedule), true},
		"one with allocatable not yet known doesn't":       {func(n *corev1.Node) { n.Status.Allocatable = nil }, false},
		"one without cpu doesn't":                          {without("cpu"), false},
		"one without memory doesn't":                       {without("memory"), false},
		"one without room for pods doesn't":                {func(n *corev1.Node) { n.Status.Allocatable["pods"] = list("pods", "0")["pods"] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := readyNode("a")
			test.change(node)
			want := figures{1,
				map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110"},
				map[string]string{"cpu": "1", "memory": "0", "pods": "1"}}
			if !test.counts {
				want = figures{0, map[string]string{}, map[string]string{}}
			}
			got := sumOf([]*corev1.Node{node}, []*corev1.Pod{runningPod("a", container("c", "cpu", "1"))})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("total of the node and its pod (-want +got):\n%s", diff)
			}
		})
	}
}
