package commitment

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkSum adds up a cell of 100 nodes and 10,000 pods: what one heartbeat
// costs.
func BenchmarkSum(b *testing.B) {
	var nodes []Node
	for i := range 100 {
		nodes = append(nodes, OfNode(readyNode(fmt.Sprint("node-", i), "nvidia.com/gpu", "8", "ephemeral-storage", "100Gi")))
	}
	var pods []Pod
	for i := range 10_000 {
		pods = append(pods, OfPod(runningPod(fmt.Sprint("node-", i%100),
			container("c", "cpu", "250m", "memory", "200Mi", "ephemeral-storage", "1Gi"), container("d", "cpu", "50m", "memory", "64Mi"))))
	}
	b.ReportAllocs()
	for b.Loop() {
		if total := Sum(slices.Values(nodes), slices.Values(pods)); total.Nodes != 100 {
			b.Fatalf("counted %d nodes", total.Nodes)
		}
	}
}
