package placement

import (
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// Engine decides over the registered cells and what the index knows of them.
// It may be used by several goroutines at once.
type Engine struct {
	index    *capacity.Index
	unstated capacity.Amounts

	fleet atomic.Pointer[fleet] // changes only while the index is locked
	turns turns                 // used only while the index is locked
}

// New returns an engine over the index, with no cell registered. Unstated is
// what is reserved for a workload that doesn't say what it needs; empty means
// 100m of cpu, 128Mi of memory and one pod.
func New(index *capacity.Index, unstated capacity.Amounts) *Engine {
	if len(unstated) == 0 {
		unstated = capacity.Amounts{
			{Resource: corev1.ResourceCPU, Value: 100},
			{Resource: corev1.ResourceMemory, Value: 128 << 20},
			{Resource: corev1.ResourcePods, Value: 1},
		}
	}
	e := &Engine{index: index, unstated: unstated, turns: turns{}}
	e.Register(nil)
	return e
}

// Register makes these rows the registered cells, in any order. The index takes
// reports about them and no others from now on. The rows must not change
// afterwards.
func (e *Engine) Register(rows []*registry.Cluster) {
	f := newFleet(rows)
	e.index.Sync(f.names, func() { e.fleet.Store(f) })
}

// needs is what to reserve for a request.
func (e *Engine) needs(r Request) capacity.Amounts {
	if len(r.Resources) == 0 {
		return e.unstated
	}
	return r.Resources
}
