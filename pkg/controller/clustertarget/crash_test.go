package clustertarget

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
)

func TestTheNextLeaderDeletesTheCanaryOfARunThatWasCutAndResumesIt(t *testing.T) {
	tests := map[string]struct {
		asked string // a request before the crash
		while func(*world, *cluster)
		want  func(*registryv1alpha1.ClusterTargetStatus, string) bool
		gone  int
	}{
		"a first run keeps its id": {"", func(*world, *cluster) {},
			func(s *registryv1alpha1.ClusterTargetStatus, cut string) bool {
				return s.Run.ID == cut && s.Run.Reason == "Resumed"
			}, 2},
		"a run that was asked for keeps its id": {"asked", func(*world, *cluster) {},
			func(s *registryv1alpha1.ClusterTargetStatus, _ string) bool {
				return s.Run.ID == "asked" && s.Run.Reason == "Resumed"
			}, 3},
		"a spec that changed meanwhile is why it runs": {"", func(w *world, _ *cluster) { w.change("a") },
			func(s *registryv1alpha1.ClusterTargetStatus, cut string) bool {
				return s.Run.ID == cut && s.Run.Reason == "SpecChanged" && s.Run.Generation == 2
			}, 2},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c := w.register("a", &cluster{silent: tt.asked == ""})
				kill := w.lead()
				w.after(3 * time.Second)
				if tt.asked != "" {
					c.set(func(c *cluster) { c.silent = true })
					w.request("a", tt.asked)
					w.after(3 * time.Second)
				}
				kill()
				run := w.row("a").Status.Run
				if c.podsLeft() != 1 || run.FinishedAt != nil || run.Canary.DeletedAt != nil || run.Canary.PodUID == "" {
					t.Fatalf("the crash left %d pods and %+v", c.podsLeft(), run)
				}
				c.set(func(c *cluster) { c.silent = false })
				tt.while(w, c)
				defer w.lead()()
				w.after(5 * time.Second)
				s := w.row("a").Status
				if s.State != "Ready" || s.Run.FinishedAt == nil || !tt.want(&s, run.ID) || c.podsLeft() != 0 || len(c.deleted) != tt.gone {
					t.Errorf("it's %s by %+v, %d pods left, deleted %v", s.State, s.Run, c.podsLeft(), c.deleted)
				}
			})
		})
	}
}

func TestACanaryThatCantBeDeletedIsRememberedUntilItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{silent: true})
		kill := w.lead()
		w.after(3 * time.Second)
		kill()
		name := w.row("a").Status.Run.Canary.PodName
		w.replica("a", `{"run":{"canary":{"receivedAt":"2026-01-01T00:00:00Z"}}}`)
		c.set(func(c *cluster) { c.err = unreachable() })
		defer w.lead()()
		w.after(5 * time.Second)
		w.wantState("a", registryv1alpha1.TargetUnreachable)
		if canary := w.row("a").Status.Run.Canary; canary == nil || canary.PodName != name || canary.DeletedAt != nil {
			t.Errorf("the row forgot it: %+v", canary)
		}
		// The next run has a canary of its own, for which the earlier one's receipt
		// says nothing.
		c.set(func(c *cluster) { c.err = nil })
		w.after(2 * time.Minute)
		if canary := w.row("a").Status.Run.Canary; canary.PodName == name || canary.ReceivedAt != nil || canary.DeletedAt != nil {
			t.Errorf("the next canary is %+v", canary)
		}
		w.replica("a", `{"run":{"canary":{"receivedAt":"2026-01-01T00:00:00Z"}}}`)
		w.after(2 * time.Second)
		w.wantState("a", registryv1alpha1.TargetReady)
		if c.podsLeft() != 0 || c.deleted[0] != name {
			t.Errorf("%d pods left, deleted %v", c.podsLeft(), c.deleted)
		}
	})
}

// Whoever may write the status can't have the hub delete somebody's pod.
func TestWhatIsntCalledACanaryIsntDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{})
		kill := w.lead()
		w.after(3 * time.Second)
		w.wantState("a", registryv1alpha1.TargetReady)
		kill()
		c.set(func(c *cluster) { c.pods["payments-db-0"] = "db" })
		w.replica("a", `{"run":{"finishedAt":null,"canary":{"podName":"payments-db-0","podUID":null,"deletedAt":null}}}`)
		defer w.lead()()
		w.after(10 * time.Second)
		w.wantState("a", registryv1alpha1.TargetReady)
		if c.podsLeft() != 1 || w.probed() != 2 {
			t.Errorf("%d pods left after %d probes, deleted %v", c.podsLeft(), w.probed(), c.deleted)
		}
	})
}

func TestANewCanaryHasNoReceiptOfAnEarlierOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{silent: true})
		kill := w.lead()
		w.after(3 * time.Second)
		kill()
		earlier := w.row("a").Status.Run.Canary.PodName
		w.replica("a", `{"run":{"canary":{"receivedAt":"2026-01-01T00:00:00Z"}}}`)
		c.set(func(c *cluster) { c.keeps = true }) // so that it's named until there's another
		defer w.lead()()
		w.after(5 * time.Second)
		if canary := w.row("a").Status.Run.Canary; canary.PodName == earlier || canary.PodUID == "" || canary.ReceivedAt != nil {
			t.Errorf("the new canary is %+v", canary)
		}
		w.wantState("a", registryv1alpha1.TargetProbing)
	})
}

func TestACanaryThatTheProbeLeftIsDeletedAsTheRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{lazy: true})
		defer w.lead()()
		w.after(5 * time.Second)
		if s := w.row("a").Status; s.State != "Ready" || c.podsLeft() != 0 || s.Run.Canary.DeletedAt == nil {
			t.Errorf("it's %s, %d pods left: %+v", s.State, c.podsLeft(), s.Run.Canary)
		}
	})
}

func TestOnlyTheReceiptOfTheRunsOwnCanaryCounts(t *testing.T) {
	now := metav1.Now()
	tests := map[string]struct {
		found *registryv1alpha1.ProbeCanary
		want  bool
	}{
		"its own":                         {&registryv1alpha1.ProbeCanary{PodName: "own", ReceivedAt: &now}, true},
		"its own, of which none came yet": {&registryv1alpha1.ProbeCanary{PodName: "own"}, false},
		"one of an earlier run":           {&registryv1alpha1.ProbeCanary{PodName: "earlier", ReceivedAt: &now}, false},
		"none":                            {nil, false},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			j := newJournal(Config{}, &target{}, &registryv1alpha1.ClusterTarget{}, "id")
			j.receive(tt.found) // before it's named nothing counts
			j.canary = &registryv1alpha1.ProbeCanary{PodName: "own"}
			if j.receive(tt.found); j.received != tt.want {
				t.Errorf("received: %t", j.received)
			}
			j.receive(tt.found) // once is enough
		})
	}
}

func TestALookDeletesWhatARunCouldnt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{keeps: true})
		defer w.lead()()
		w.after(5 * time.Second)
		if s := w.row("a").Status; s.State != "Ready" || c.podsLeft() != 1 || s.Run.Canary.DeletedAt != nil {
			t.Fatalf("it's %s, %d pods left: %+v", s.State, c.podsLeft(), s.Run.Canary)
		}
		c.set(func(c *cluster) { c.keeps = false })
		w.after(6 * time.Minute)
		if s := w.row("a").Status; c.podsLeft() != 0 || s.Run.Canary.DeletedAt == nil || w.probed() != 1 {
			t.Errorf("%d pods left after %d probes: %+v", c.podsLeft(), w.probed(), s.Run.Canary)
		}
	})
}

func TestTheLeaderNeverTouchesWhatAnotherReplicaWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("a", &cluster{steps: 9, step: 120 * time.Millisecond})
		defer w.lead()()
		// Requests come at every moment of the run, and after it.
		for i := range 40 {
			w.request("a", "asked-"+string(rune('A'+i)))
			w.after(97 * time.Millisecond)
		}
		w.after(10 * time.Second)
		s := w.row("a").Status
		if s.Request.ID != "asked-"+string(rune('A'+39)) || s.Run.ID != s.Request.ID || s.Run.FinishedAt == nil {
			t.Errorf("request %+v, run %+v", s.Request, s.Run)
		}
		if s.Run.Canary.ReceivedAt == nil || s.Run.Canary.DeletedAt == nil || s.Run.Canary.PodUID == "" || s.State != "Ready" {
			t.Errorf("it's %s with the canary %+v", s.State, s.Run.Canary)
		}
		for _, p := range w.patches {
			if receipt, written := receiptIn(t, p.body); strings.Contains(p.body, `"request"`) || written && receipt != nil {
				t.Errorf("the leader wrote %s", p.body)
			} else if written && !strings.Contains(p.body, `"podName":"`) {
				t.Errorf("a receipt is taken back where no canary is named: %s", p.body)
			}
		}
	})
}

// receiptIn is what a patch makes of the receipt.
func receiptIn(t *testing.T, body string) (value any, written bool) {
	t.Helper()
	var patch struct {
		Status struct {
			Run struct {
				Canary map[string]any `json:"canary"`
			} `json:"run"`
		} `json:"status"`
	}
	if err := json.Unmarshal([]byte(body), &patch); err != nil {
		t.Fatal(err)
	}
	value, written = patch.Status.Run.Canary["receivedAt"]
	return value, written
}

func TestARowThatChangedMeanwhileIsNotWrittenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("a", &cluster{})
		r := New(Config{Client: w.api, Audit: w, Clock: clock.RealClock{}})
		before := w.row("a")
		w.request("a", "asked")
		row := before.DeepCopy()
		nameConflict(row, true, time.Now())
		if err := r.write(t.Context(), r.track(row), before, row, nil); !apierrors.IsConflict(err) {
			t.Errorf("got %v, want a conflict", err)
		}
	})
}

func TestARunThatWasCutHasNoResult(t *testing.T) {
	tests := map[string]struct{ cut, stopped, kept bool }{
		"one that came to its end":      {false, false, true},
		"one that was cut":              {true, false, false},
		"one that the process ended in": {false, true, false},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			known := &target{run: &run{cut: tt.cut, done: make(chan struct{})}}
			known.finished(&ended{}, tt.stopped)
			if kept := known.runEnded != nil; kept != tt.kept || known.run != nil {
				t.Errorf("kept: %t", kept)
			}
		})
	}
}

func TestProgressIsWrittenFourTimesASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("a", &cluster{steps: 9, step: 10 * time.Millisecond})
		defer w.lead()()
		w.after(5 * time.Second)
		w.wantState("a", registryv1alpha1.TargetReady)
		for i, p := range w.patches {
			if i >= 6 && p.at.Sub(w.patches[i-6].at) < time.Second {
				t.Errorf("%d writes within %s", 7, p.at.Sub(w.patches[i-6].at))
			}
		}
		// The row as it's created and as the run ends are written beside.
		if n := len(w.patches); n < 6 || n > 9 {
			t.Errorf("%d writes", n)
		}
	})
}

func TestADeletedTargetIsLetGoOf(t *testing.T) {
	tests := map[string]struct {
		when   func(*world, *cluster)
		within time.Duration
		pods   int
		forgot int // at least
	}{
		"at once, when nothing is under way": {func(*world, *cluster) {}, 200 * time.Millisecond, 0, 1},
		"with the canary of a run that's under way": {func(w *world, c *cluster) {
			c.set(func(c *cluster) { c.silent = true })
			w.request("a", "asked")
			w.after(2 * time.Second)
		}, time.Second, 0, 1},
		"within six seconds, when the target hangs": {func(w *world, c *cluster) {
			c.set(func(c *cluster) { c.silent = true })
			w.request("a", "asked")
			w.after(2 * time.Second)
			c.set(func(c *cluster) { c.hangs = true })
		}, 6 * time.Second, 1, 2},
		"within six seconds, when a call never ends": {func(w *world, c *cluster) {
			c.set(func(c *cluster) { c.stubborn = true })
			w.request("a", "asked")
			w.after(2 * time.Second)
		}, 6 * time.Second, 0, 2},
		"when its credential is gone, with a canary left": {func(w *world, c *cluster) {
			c.set(func(c *cluster) { c.keeps = true })
			w.request("a", "asked")
			w.after(5 * time.Second)
			c.set(func(c *cluster) { c.err = advice("create it") })
		}, time.Second, 1, 1},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c := w.register("a", &cluster{})
				defer w.lead()()
				w.after(3 * time.Second)
				tt.when(w, c)
				if err := w.api.Delete(t.Context(), w.row("a")); err != nil {
					t.Fatal(err)
				}
				w.after(tt.within)
				if err := w.api.Get(t.Context(), keyOf("a"), &registryv1alpha1.ClusterTarget{}); err == nil {
					t.Fatalf("the row is still there after %s", tt.within)
				}
				w.after(2 * time.Hour)
				if c.podsLeft() != tt.pods || len(w.forgets) < tt.forgot || w.forgets[0] != "uid-a" {
					t.Errorf("%d pods left, forgot %v", c.podsLeft(), w.forgets)
				}
				if n := len(w.recorded(audit.EventProbe)); n > 2 {
					t.Errorf("a run that was cut is recorded: %d", n)
				}
			})
		})
	}
}

func TestARowOfTheSameNameIsAnotherTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("a", &cluster{stubborn: true})
		defer w.lead()()
		w.after(time.Second)
		row := w.row("a")
		row.Finalizers = nil // by force
		if err := w.api.Update(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		if err := w.api.Delete(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		other := row.DeepCopy()
		other.UID, other.ResourceVersion, other.Status = "other", "", registryv1alpha1.ClusterTargetStatus{}
		w.mu.Lock()
		w.clusters["a"] = &cluster{pods: w.clusters["a"].pods}
		w.mu.Unlock()
		w.create(other)
		w.after(4 * time.Second)
		w.wantState("a", registryv1alpha1.TargetReady)
		w.after(2 * time.Hour)
		w.wantState("a", registryv1alpha1.TargetReady)
		if len(w.forgets) != 2 || w.forgets[0] != "uid-a" || w.forgets[1] != "uid-a" {
			t.Errorf("forgot %v, want the first one, and again when its call ended", w.forgets)
		}
	})
}
