package clustertarget

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
)

func conditionsOf(row *registryv1alpha1.ClusterTarget) map[string]string {
	found := map[string]string{}
	for _, c := range row.Status.Conditions {
		found[c.Type] = string(c.Status) + " " + c.Reason
	}
	return found
}

func TestARowIsProbedAndBecomesReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{steps: 3, step: 100 * time.Millisecond})
		defer w.lead()()
		w.after(200 * time.Millisecond)
		w.wantState("a", registryv1alpha1.TargetProbing)
		w.after(5 * time.Second)

		row := w.row("a")
		s := row.Status
		if s.State != "Ready" || s.Failing != "" || s.ObservedGeneration != 1 || s.CredentialVersion != "1" || len(s.Checks) != 6 ||
			s.Identity == nil || len(s.Capabilities) != 1 || s.Run.Reason != "Created" || s.Run.FinishedAt == nil || s.Run.Canary.DeletedAt == nil {
			t.Errorf("the status is %+v", s)
		}
		want := map[string]string{"Ready": "True Ready", "Reachable": "True Connected", "CredentialAvailable": "True Read", "NameConflict": "False NameFree"}
		if diff := cmp.Diff(want, conditionsOf(row)); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
		if len(row.Finalizers) != 1 || c.podsLeft() != 0 || w.probed() != 1 {
			t.Errorf("finalizers %v, %d pods left, %d probes", row.Finalizers, c.podsLeft(), w.probed())
		}
		probe := []audit.Record{{Event: "probe", Outcome: "allowed", Kind: "ClusterTarget", Name: "team/a", Target: "target:uid-a", Run: s.Run.ID}}
		if diff := cmp.Diff(probe, w.recorded(audit.EventProbe)); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		changes := w.recorded(audit.EventRowChanged)
		if len(changes) != 2 || len(changes[0].Changes) != 4 || len(changes[1].Changes) != 3 || changes[1].Target != "target:uid-a" {
			t.Errorf("changes recorded: %+v", changes)
		}
	})
}

func TestAProbeThatFailsNamesItsItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("a", &cluster{err: unreachable()})
		defer w.lead()()
		w.after(2 * time.Second)
		row := w.row("a")
		if row.Status.State != "Unreachable" || row.Status.Failing != "Reachable: it failed" {
			t.Errorf("it's %s: %s", row.Status.State, row.Status.Failing)
		}
		want := map[string]string{"Ready": "False Unreachable", "Reachable": "False Unreachable", "CredentialAvailable": "True Read", "NameConflict": "False NameFree"}
		if diff := cmp.Diff(want, conditionsOf(row)); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
		records := w.recorded(audit.EventProbe)
		if len(records) != 1 || records[0].Outcome != "refused" || records[0].Message != "Reachable: it failed" {
			t.Errorf("recorded %+v", records)
		}
	})
}

func TestAHundredDeadTargetsDontSlowAHealthyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range 100 {
			w.register(fmt.Sprintf("dead-%d", i), &cluster{hangs: true})
		}
		defer w.lead()()
		w.after(time.Second)
		w.register("healthy", &cluster{})
		w.after(3 * time.Second)
		w.wantState("healthy", registryv1alpha1.TargetReady)
		w.wantState("dead-99", registryv1alpha1.TargetProbing)

		// Their runs end by their time, and their looks hang too.
		w.after(timeBox)
		w.wantState("dead-99", registryv1alpha1.TargetFailed)
		w.after(7*time.Minute + 30*time.Second)
		w.wantState("dead-99", registryv1alpha1.TargetUnreachable)
		began := time.Now()
		w.request("healthy", "asked")
		w.after(3 * time.Second)
		if run := w.row("healthy").Status.Run; run.ID != "asked" || run.FinishedAt == nil || run.FinishedAt.Sub(began) > 3*time.Second {
			t.Errorf("its run is %+v", run)
		}
	})
}

func TestAProbeOnDemandDoesntTakeATargetOutOfUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("a", &cluster{})
		defer w.lead()()
		w.after(3 * time.Second)
		w.request("a", "asked")
		w.after(700 * time.Millisecond)
		if s := w.row("a").Status; s.State != "Ready" || s.Run.ID != "asked" || s.Run.Reason != "Requested" || s.Run.FinishedAt != nil {
			t.Errorf("under way: %s, %+v", s.State, s.Run)
		}
		w.after(3 * time.Second)
		if s := w.row("a").Status; s.State != "Ready" || s.Run.ID != "asked" || s.Run.FinishedAt == nil || w.probed() != 2 {
			t.Errorf("in the end: %s, %+v, %d probes", s.State, s.Run, w.probed())
		}
	})
}

func TestAChangeOfTheSpecCutsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{})
		defer w.lead()()
		w.after(3 * time.Second)
		c.set(func(c *cluster) { c.silent = true })
		w.request("a", "asked")
		w.after(2 * time.Second)
		if c.podsLeft() != 1 {
			t.Fatal("no canary is under way")
		}
		c.set(func(c *cluster) { c.silent = false })
		w.change("a")
		w.after(100 * time.Millisecond)
		w.wantState("a", registryv1alpha1.TargetProbing)
		w.after(4 * time.Second)
		s := w.row("a").Status
		if s.State != "Ready" || s.ObservedGeneration != 2 || s.Run.Reason != "SpecChanged" || s.Run.ID != "asked" || s.Run.Generation != 2 {
			t.Errorf("it's %s of generation %d by %+v", s.State, s.ObservedGeneration, s.Run)
		}
		if c.podsLeft() != 0 || len(c.deleted) != 3 || w.probed() != 3 || len(w.recorded(audit.EventProbe)) != 2 {
			t.Errorf("%d canaries left, %d deleted, %d probes, %d recorded", c.podsLeft(), len(c.deleted), w.probed(), len(w.recorded(audit.EventProbe)))
		}
	})
}

func TestARunThatTakesTooLongFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{silent: true})
		defer w.lead()()
		w.after(timeBox + 2*time.Second)
		s := w.row("a").Status
		if s.State != "Failed" || s.Failing != "The probe didn't end within 4 minutes: what answers, answers too slowly. Once that's mended, ask for another one." || c.podsLeft() != 0 {
			t.Errorf("it's %s: %s; %d canaries left", s.State, s.Failing, c.podsLeft())
		}
	})
}

func TestAResultThatTheAPIRefusesStillEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.invalid = true
		w.register("a", &cluster{})
		defer w.lead()()
		w.after(5 * time.Second)
		s := w.row("a").Status
		if s.State != "Failed" || s.Run.FinishedAt == nil || w.probed() != 1 {
			t.Errorf("it's %s after %d probes: %+v", s.State, w.probed(), s.Run)
		}
	})
}

func TestACellOfTheNameIsAConflictThatChangesNoState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("a", &cluster{})
		w.register("b", &cluster{})
		defer w.lead()()
		w.after(3 * time.Second)
		cell := &registryv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		w.create(cell)
		w.after(time.Second)
		if got := conditionsOf(w.row("a")); got["NameConflict"] != "True NameTaken" || got["Ready"] != "True Ready" {
			t.Errorf("conditions are %v", got)
		}
		if got := conditionsOf(w.row("b")); got["NameConflict"] != "False NameFree" {
			t.Errorf("the other's conditions are %v", got)
		}
		if err := w.api.Delete(t.Context(), cell); err != nil {
			t.Fatal(err)
		}
		w.after(time.Second)
		if got := conditionsOf(w.row("a")); got["NameConflict"] != "False NameFree" {
			t.Errorf("once it's gone the conditions are %v", got)
		}
	})
}
