package clustertarget

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/kubeconfig"
)

func TestJudgeSaysHowALookEnded(t *testing.T) {
	of := func(kind failure.Kind, err error) error {
		return fmt.Errorf("look: %w", &failure.Error{Kind: kind, Cell: "c", Err: err})
	}
	boom := errors.New("boom")
	tests := map[string]struct {
		err    error
		late   bool
		want   found
		advice string
	}{
		"an answer":                              {nil, false, answered, ""},
		"a 401 is no network failure":            {of(failure.Unauthenticated, boom), false, rejected, ""},
		"no connection":                          {of(failure.Unreachable, boom), false, unconnected, ""},
		"a look that hung to its end":            {of(failure.Interrupted, context.DeadlineExceeded), true, unconnected, ""},
		"a look that this process gave up":       {of(failure.Interrupted, context.Canceled), false, unclear, ""},
		"a 503":                                  {of(failure.Unavailable, boom), false, unclear, ""},
		"a 403":                                  {of(failure.Forbidden, boom), false, unclear, ""},
		"a 404":                                  {of(failure.NotFound, boom), false, unclear, ""},
		"a 422":                                  {of(failure.Rejected, boom), false, unclear, ""},
		"something else's page":                  {of(failure.Unexpected, boom), false, unclear, ""},
		"a fault that has no kind":               {boom, false, unclear, ""},
		"a source that is away":                  {of(failure.NoHubToken, advice("create the Secret")), false, unavailable, "create the Secret"},
		"a source that is away, outside a call":  {advice("create the Secret"), false, unavailable, "create the Secret"},
		"a source that hung":                     {advice("unseal it"), true, unavailable, "unseal it"},
		"a source that says nothing":             {of(failure.NoHubToken, boom), false, unavailable, "The credential couldn't be read; the hub's log has the error."},
		"a kubeconfig that isn't of the form":    {&kubeconfig.Error{}, false, refused, ""},
		"such a kubeconfig in the client's call": {of(failure.NoHubToken, &kubeconfig.Error{}), false, refused, ""},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			if kind, advice := judge(tt.err, tt.late); kind != tt.want || advice != tt.advice {
				t.Errorf("got %s %q, want %s %q", kind, advice, tt.want, tt.advice)
			}
		})
	}
}

func TestObserveMovesTheStateAndNeverToReady(t *testing.T) {
	checked := func(result registryv1alpha1.CheckResult) []registryv1alpha1.TargetCheck {
		return []registryv1alpha1.TargetCheck{{Name: registryv1alpha1.CheckCredential, Result: result}}
	}
	at := func(state registryv1alpha1.TargetState) registryv1alpha1.ClusterTargetStatus {
		return registryv1alpha1.ClusterTargetStatus{State: state, CredentialVersion: "1", Checks: checked("Passed")}
	}
	saidSo := at("Failed")
	saidSo.Checks = checked("Failed")
	tests := map[string]struct {
		status registryv1alpha1.ClusterTargetStatus
		look   look
		state  registryv1alpha1.TargetState
		news   registryv1alpha1.ProbeReason
		want   map[string]string
	}{
		"a Ready target that answers is as it was":     {at("Ready"), look{found: answered}, "Ready", "", map[string]string{"Reachable": "True Connected", "CredentialAvailable": "True Read"}},
		"a Failed target that answers is as it was":    {at("Failed"), look{found: answered}, "Failed", "", map[string]string{"Reachable": "True Connected", "CredentialAvailable": "True Read"}},
		"an Unreachable one is probed, and no more":    {at("Unreachable"), look{found: answered}, "Unreachable", "Recovered", map[string]string{"Reachable": "True Connected", "CredentialAvailable": "True Read"}},
		"so is one whose credential was rejected":      {at("CredentialRejected"), look{found: answered}, "CredentialRejected", "Recovered", map[string]string{"Reachable": "True Connected", "CredentialAvailable": "True Read"}},
		"so is one whose credential couldn't be read":  {at("CredentialUnavailable"), look{found: answered}, "CredentialUnavailable", "Recovered", map[string]string{"Reachable": "True Connected", "CredentialAvailable": "True Read"}},
		"another credential is probed":                 {at("Ready"), look{found: answered, sight: Sight{"2"}}, "Ready", "CredentialChanged", map[string]string{"Reachable": "True Connected", "CredentialAvailable": "True Read"}},
		"a failure or two to connect change nothing":   {at("Ready"), look{found: unconnected, failures: 2}, "Ready", "", map[string]string{}},
		"three make it Unreachable":                    {at("Ready"), look{found: unconnected, failures: 3}, "Unreachable", "", map[string]string{"Ready": "False Unreachable", "Reachable": "False Unreachable", "CredentialAvailable": "True Read"}},
		"a 401 makes it CredentialRejected at once":    {at("Ready"), look{found: rejected}, "CredentialRejected", "", map[string]string{"Ready": "False CredentialRejected", "Reachable": "True Connected", "CredentialAvailable": "True Read"}},
		"a source that is away has its own condition":  {at("Ready"), look{found: unavailable, advice: "create it"}, "CredentialUnavailable", "", map[string]string{"Ready": "False CredentialUnavailable", "CredentialAvailable": "False Unavailable"}},
		"an answer that isn't clear changes nothing":   {at("Ready"), look{found: unclear}, "Ready", "", map[string]string{}},
		"and doesn't recover":                          {at("Unreachable"), look{found: unclear}, "Unreachable", "", map[string]string{}},
		"a refused kubeconfig is probed":               {at("Ready"), look{found: refused, sight: Sight{"2"}}, "Ready", "CredentialChanged", map[string]string{"CredentialAvailable": "True Read"}},
		"but not over and over":                        {saidSo, look{found: refused, sight: Sight{"1"}}, "Failed", "", map[string]string{"CredentialAvailable": "True Read"}},
		"nor where no version is known":                {saidSo, look{found: refused, sight: Sight{""}}, "Failed", "", map[string]string{"CredentialAvailable": "True Read"}},
		"another refused kubeconfig is probed as well": {saidSo, look{found: refused, sight: Sight{"2"}}, "Failed", "CredentialChanged", map[string]string{"CredentialAvailable": "True Read"}},
		"a state that nobody knows is probed":          {at("Asleep"), look{found: answered}, "Asleep", "Recovered", map[string]string{"Reachable": "True Connected", "CredentialAvailable": "True Read"}},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			row := &registryv1alpha1.ClusterTarget{Status: tt.status}
			if tt.look.found == answered && tt.look.sight.CredentialVersion == "" {
				tt.look.sight.CredentialVersion = "1"
			}
			news := observe(row, &tt.look, time.Now())
			if row.Status.State != tt.state || news != tt.news {
				t.Errorf("it's %s, and a run is due because of %q; want %s and %q", row.Status.State, news, tt.state, tt.news)
			}
			if diff := cmp.Diff(tt.want, conditionsOf(row)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALookThatNobodyWaitsForSaysNothing(t *testing.T) {
	cut := &look{}
	known := &target{look: &look{}}
	if known.looked(cut, Sight{}, unconnected, "", ""); known.lookEnd != nil || known.failures != 0 {
		t.Errorf("it counts: %+v", known.lookEnd)
	}
}

// gaps are the times between looks, rounded to what they're meant to be.
func gaps(looks []time.Time) []string {
	var found []string
	meant := []time.Duration{5 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute}
	for i := 1; i < len(looks); i++ {
		gap, name := looks[i].Sub(looks[i-1]), "?"
		for _, m := range meant {
			if gap > m-m/10-time.Second && gap < m+m/10+time.Second {
				name = m.String()
			}
		}
		if name == "?" {
			name = gap.String()
		}
		found = append(found, name)
	}
	return found
}

func TestATargetThatIsAwayBecomesUnreachableAndReadyOnlyByAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{})
		defer w.lead()()
		w.after(3 * time.Second)
		c.set(func(c *cluster) { c.err = unreachable() })
		w.after(6 * time.Minute)
		w.wantState("a", registryv1alpha1.TargetUnreachable)
		if got := conditionsOf(w.row("a")); got["Reachable"] != "False Unreachable" || got["Ready"] != "False Unreachable" {
			t.Errorf("conditions are %v", got)
		}
		w.after(20 * time.Minute)
		want := []string{"5s", "5s", "30s", "1m0s", "2m0s", "4m0s", "5m0s", "5m0s"}
		if got := gaps(c.looked()); len(got) < len(want) || cmp.Diff(want, got[:len(want)]) != "" {
			t.Errorf("looks came after %v, want %v", got, want)
		}
		if w.probed() != 1 {
			t.Errorf("%d probes while it's away", w.probed())
		}
		// It answers, and its pods don't reach the hub any more.
		c.set(func(c *cluster) { c.err, c.silent = nil, true })
		for n := 0; w.probed() == 1 && n < 400; n++ {
			w.after(time.Second)
		}
		if s := w.row("a").Status; s.State != "Unreachable" || s.Run.Reason != "Recovered" || w.probed() != 2 {
			t.Errorf("it's %s by %s after %d probes", s.State, s.Run.Reason, w.probed())
		}
		w.after(timeBox + 5*time.Second)
		w.wantState("a", registryv1alpha1.TargetFailed)
		// Whoever asks meanwhile doesn't end that it is repeated, less and less often.
		w.request("a", "asked")
		w.after(timeBox + 5*time.Second)
		w.wantState("a", registryv1alpha1.TargetFailed)
		w.after(24 * time.Hour)
		if repeated := w.probed() - 3; repeated < 23 || repeated > 30 {
			t.Errorf("%d runs more in a day, want one an hour and some at first", repeated)
		}
		// Nobody has to ask for the run that passes.
		c.set(func(c *cluster) { c.silent = false })
		w.after(80 * time.Minute)
		if s := w.row("a").Status; s.State != "Ready" || s.Run.Reason != "Recovered" {
			t.Errorf("it's %s by %s", s.State, s.Run.Reason)
		}
	})
}

func TestARunThatWasCutIsRepeatedAsItWouldHaveBeen(t *testing.T) {
	for reason, want := range map[registryv1alpha1.ProbeReason]registryv1alpha1.ProbeReason{
		registryv1alpha1.ProbeRecovered: registryv1alpha1.ProbeRecovered,
		registryv1alpha1.ProbeCreated:   registryv1alpha1.ProbeResumed,
		registryv1alpha1.ProbeRequested: registryv1alpha1.ProbeResumed,
	} {
		row := &registryv1alpha1.ClusterTarget{Status: registryv1alpha1.ClusterTargetStatus{
			State: registryv1alpha1.TargetUnreachable, Run: &registryv1alpha1.ProbeRun{ID: "cut", Reason: reason},
		}}
		if got := new(target).due(row, ""); got != (order{"cut", want}) {
			t.Errorf("a run for %s is resumed as %+v", reason, got)
		}
	}
}

// Whoever asked for a run sees how it ended.
func TestAFailedRunThatSomebodyAskedForIsntRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{})
		defer w.lead()()
		w.after(3 * time.Second)
		c.set(func(c *cluster) { c.silent = true })
		w.request("a", "asked")
		w.after(timeBox + 5*time.Second)
		w.wantState("a", registryv1alpha1.TargetFailed)
		c.set(func(c *cluster) { c.silent = false })
		w.after(time.Hour)
		w.wantState("a", registryv1alpha1.TargetFailed)
		if w.probed() != 2 {
			t.Errorf("%d probes", w.probed())
		}
	})
}

func TestTwoFailuresInARowAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{})
		defer w.lead()()
		w.after(3 * time.Second)
		for range 3 {
			n := len(c.looked())
			c.set(func(c *cluster) { c.err = unreachable() })
			for len(c.looked()) < n+2 {
				w.after(time.Second)
			}
			c.set(func(c *cluster) { c.err = nil })
			w.after(10 * time.Second)
			w.wantState("a", registryv1alpha1.TargetReady)
		}
		if w.probed() != 1 {
			t.Errorf("%d probes", w.probed())
		}
	})
}

func TestACredentialThatIsRejectedRecoversWithAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{})
		defer w.lead()()
		w.after(3 * time.Second)
		c.set(func(c *cluster) {
			c.err = &failure.Error{Kind: failure.Unauthenticated, Cell: "c", Err: errors.New("401")}
		})
		w.after(6 * time.Minute)
		if s := w.row("a").Status; s.State != "CredentialRejected" || s.Failing != "Authenticated: "+saysRejected || len(c.looked()) != 1 {
			t.Errorf("it's %s (%s) after %d looks", s.State, s.Failing, len(c.looked()))
		}
		c.set(func(c *cluster) { c.err, c.version = nil, "2" })
		w.after(6 * time.Minute)
		if s := w.row("a").Status; s.State != "Ready" || s.CredentialVersion != "2" || s.Run.Reason != "CredentialChanged" || w.probed() != 2 {
			t.Errorf("it's %s with version %s by %s after %d probes", s.State, s.CredentialVersion, s.Run.Reason, w.probed())
		}
	})
}

func TestASourceThatIsAwayIsTriedAgainSoonAndThenByTheRescan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.register("a", &cluster{})
		defer w.lead()()
		w.after(3 * time.Second)
		c.set(func(c *cluster) { c.err = advice("create the Secret") })
		w.after(6 * time.Minute)
		if s := w.row("a").Status; s.State != "CredentialUnavailable" || s.Failing != "Credential: create the Secret" {
			t.Errorf("it's %s (%s)", s.State, s.Failing)
		}
		w.after(12 * time.Minute)
		if got := gaps(c.looked()); cmp.Diff([]string{"30s", "5m0s", "5m0s"}, got[:3]) != "" {
			t.Errorf("looks came after %v", got)
		}
		c.set(func(c *cluster) { c.err = nil })
		w.after(6 * time.Minute)
		if s := w.row("a").Status; s.State != "Ready" || s.Run.Reason != "Recovered" {
			t.Errorf("it's %s by %s", s.State, s.Run.Reason)
		}
	})
}
