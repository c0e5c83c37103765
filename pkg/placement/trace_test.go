package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
)

func TestTrace(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, env string
		state     registry.ClusterState
	}{
		{"chosen", "prod", registry.StateLive}, {"dark", "prod", registry.StateDark}, {"draining", "prod", registry.StateDraining},
		{"eligible", "prod", registry.StateLive}, {"foreign", "dev", registry.StateDraining}, {"full", "prod", registry.StateLive},
		{"gpuless", "prod", registry.StateLive}, {"new", "prod", registry.StateLive}, {"nodeless", "prod", registry.StateLive},
		{"odd", "prod", "SLEEPING"}, {"stale", "prod", registry.StateLive},
	} {
		w.cell(c.name, c.env, c.state)
	}
	const gpus = "cpu=100 memory=64Gi pods=100 nvidia.com/gpu=8"
	w.report("stale", noon, gpus, "")
	w.report("chosen", at(88), gpus, "cpu=10")
	w.report("eligible", at(90), gpus, "cpu=20")
	w.report("full", at(90), gpus, "memory=63Gi")
	w.report("gpuless", at(90), "cpu=100 memory=64Gi pods=100", "")
	w.report("nodeless", at(90), "", "")
	w.report("dark", at(90), gpus, "cpu=30")
	w.report("foreign", at(90), gpus, "cpu=30")

	r := Request{Workload: "shop/cart", Resources: amounts(t, "cpu=5 memory=2Gi nvidia.com/gpu=1"), Explain: true}
	d, refused := w.engine.Decide(r, permission(t, "prod", registry.StrategyLeastLoaded, false), at(91))
	if refused != nil {
		t.Fatal(refused)
	}

	seconds := func(n int64) *int64 { return &n }
	excluded := func(cell string, stage v1alpha1.Stage, reason, message string) v1alpha1.Candidate {
		return v1alpha1.Candidate{Cell: cell, Verdict: v1alpha1.VerdictExcluded, Stage: stage, Reason: reason, Message: message}
	}
	measured := func(c v1alpha1.Candidate, percent, resource string, age int64) v1alpha1.Candidate {
		c.UtilisationPercent, c.WorstResource, c.ReportAgeSeconds = percent, resource, seconds(age)
		return c
	}
	foreign := excluded("foreign", "permission", "OutsidePolicy", `policy "web" doesn't select this cell`)
	want := []v1alpha1.Candidate{
		measured(v1alpha1.Candidate{Cell: "chosen", Verdict: v1alpha1.VerdictChosen}, "15.0", "cpu", 3),
		excluded("dark", "state", "Dark", "the cell is DARK and takes only placements that ask for a dark cell"),
		excluded("draining", "state", "Draining", "the cell is DRAINING and takes no placement"),
		measured(v1alpha1.Candidate{Cell: "eligible", Verdict: v1alpha1.VerdictEligible}, "25.0", "cpu", 1),
		foreign,
		measured(excluded("full", "capacity", "DoesNotFit", "memory: 2Gi asked for, 1Gi of 64Gi free"), "101.6", "memory", 1),
		measured(excluded("gpuless", "capacity", "DoesNotFit", "nvidia.com/gpu: 1 asked for, the cell has none"), "5.0", "cpu", 1),
		excluded("new", "capacity", "NeverReported", "this replica has no report of the cell's capacity"),
		measured(excluded("nodeless", "capacity", "NoCapacity", "the cell has no node that takes pods"), "", "", 1),
		excluded("odd", "state", "UnknownState", "the cell is in a state that this replica doesn't know"),
		measured(excluded("stale", "capacity", "Stale", "the last report is 1m31s old and no longer counts"), "", "", 91),
	}
	if diff := cmp.Diff(want, d.Trace.All()); diff != "" {
		t.Error(diff)
	}
	reachable, hidden := d.Trace.Reachable()
	want = append(want[:4:4], want[5:]...)
	if diff := cmp.Diff(want, reachable); diff != "" || hidden != 1 {
		t.Errorf("%d hidden: %s", hidden, diff)
	}
}

func TestTraceOfADarkRequest(t *testing.T) {
	w := newWorld(t)
	w.cell("a", "prod", registry.StateLive)
	w.report("a", noon, hundred, "")
	d, refused := w.engine.Decide(Request{Workload: "shop/cart", Dark: true, Explain: true},
		permission(t, "prod", registry.StrategyLeastLoaded, true), noon)
	if refused == nil {
		t.Fatal("placed on a live cell")
	}
	want := []v1alpha1.Candidate{{Cell: "a", Verdict: v1alpha1.VerdictExcluded, Stage: v1alpha1.StageState, Reason: "NotDark",
		Message: "the request asks for a dark cell and this one is LIVE"}}
	if diff := cmp.Diff(want, d.Trace.All()); diff != "" {
		t.Error(diff)
	}
}

func TestNoTraceWithoutExplain(t *testing.T) {
	w := newWorld(t)
	w.cell("a", "prod", registry.StateLive)
	w.report("a", noon, hundred, "")
	d, _ := w.engine.Decide(Request{Workload: "shop/cart"}, permission(t, "prod", registry.StrategyLeastLoaded, false), noon)
	reachable, hidden := d.Trace.Reachable()
	if d.Trace != nil || d.Trace.All() != nil || reachable != nil || hidden != 0 {
		t.Errorf("got %v, %v and %d hidden", d.Trace, reachable, hidden)
	}
}
