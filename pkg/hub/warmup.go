package hub

import (
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// warmup says whether this replica has heard enough of the fleet to rank it
// (ADR-011). A new replica knows no capacity, so every cell is Unknown to it: it
// must not answer for a fleet that it hasn't heard. Once warm it stays warm;
// capacity that goes stale later is the engine's matter.
type warmup struct {
	started time.Time
	// timeout is when a replica says that it is ready all the same: agents
	// report through the Service, which routes to ready replicas alone.
	timeout time.Duration
	// grace is how long after the timeout it waits for the last cells. By then
	// each living agent has had three chances, and a dead one must not hold up
	// the others.
	grace   time.Duration
	latched atomic.Bool

	said atomic.Bool
	// late is called once, when the replica goes ready without having heard from
	// these cells.
	late func(missing []string)
}

func newWarmup(started time.Time, timeout, grace time.Duration) *warmup {
	return &warmup{started: started, timeout: timeout, grace: grace, late: func(missing []string) {
		klog.InfoS("This replica goes ready without having heard from every cell, and refuses placements with PlacementUnavailable until it has, or until the staleness window is over too",
			"waited", timeout, "missing", missing)
	}}
}

// heard says which cells that should have reported haven't, and how many have.
type heard func() (missing []string, reported int)

// warm reports whether placements may be decided. It asks only until the answer
// is yes.
func (w *warmup) warm(now time.Time, ask heard) bool {
	warm, _ := w.look(now, ask)
	return warm
}

// ready reports whether the replica may take traffic: it is warm, or it has
// waited long enough.
func (w *warmup) ready(now time.Time, ask heard) bool {
	warm, missing := w.look(now, ask)
	if warm {
		return true
	}
	if now.Sub(w.started) < w.timeout {
		return false
	}
	if w.said.CompareAndSwap(false, true) {
		w.late(missing)
	}
	return true
}

func (w *warmup) look(now time.Time, ask heard) (warm bool, missing []string) {
	if w.latched.Load() {
		return true, nil
	}
	missing, reported := ask()
	if len(missing) == 0 || (reported > 0 && now.Sub(w.started) >= w.timeout+w.grace) {
		w.latched.Store(true)
		return true, nil
	}
	return false, missing
}

// expected is what was heard of the cells that should have reported by now:
// those that name a reporter and aren't draining.
func (s *Server) expected() (missing []string, reported int) {
	view, now := s.registry.View(), s.clock.Now()
	for _, row := range view.Clusters {
		if row.Spec.Reporter == nil || row.Spec.State == registryv1alpha1.StateDraining {
			continue
		}
		if d, ok := s.index.Describe(row.Name, now); ok && d.Health == cellcastv1alpha1.CapacityFresh {
			reported++
		} else {
			missing = append(missing, row.Name)
		}
	}
	return missing, reported
}
