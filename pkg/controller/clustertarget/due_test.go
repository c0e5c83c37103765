package clustertarget

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

func TestDueGivesEachRunItsReasonAndId(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	later := metav1.NewTime(noon.Add(time.Minute))
	run := func(id string, generation int64, finished bool) *registryv1alpha1.ProbeRun {
		r := &registryv1alpha1.ProbeRun{ID: id, Generation: generation, StartedAt: metav1.NewTime(noon)}
		if finished {
			r.FinishedAt = &later
		}
		return r
	}
	request := func(id string, after time.Duration) *registryv1alpha1.ProbeRequest {
		return &registryv1alpha1.ProbeRequest{ID: id, RequestedAt: metav1.NewTime(noon.Add(after))}
	}
	tests := map[string]struct {
		run     *registryv1alpha1.ProbeRun
		request *registryv1alpha1.ProbeRequest
		news    registryv1alpha1.ProbeReason
		watched bool // this process knew the row, without the request
		reason  registryv1alpha1.ProbeReason
		id      string // "new" for one that isn't known before
	}{
		"a row that is new":                             {nil, nil, "", false, "Created", "new"},
		"a row that is new, and somebody waits":         {nil, request("r", 0), "", false, "Created", "r"},
		"a run that stands":                             {run("a", 7, true), nil, "", false, "", ""},
		"a spec that changed":                           {run("a", 6, true), nil, "", false, "SpecChanged", "new"},
		"a spec that changed in the middle of a run":    {run("a", 6, false), nil, "", false, "SpecChanged", "a"},
		"a run that nobody runs":                        {run("a", 7, false), nil, "", false, "Resumed", "a"},
		"a run that nobody runs comes before a request": {run("a", 7, false), request("r", time.Second), "", false, "Resumed", "a"},
		"a request": {run("a", 7, true), request("r", time.Second), "", false, "Requested", "r"},
		"a request of the second in which the run began":     {run("a", 7, true), request("r", 0), "", false, "Requested", "r"},
		"a request that was served":                          {run("r", 7, true), request("r", time.Second), "", false, "", ""},
		"a request that an earlier run served":               {run("a", 7, true), request("r", -time.Second), "", false, "", ""},
		"a request by a replica whose clock is behind":       {run("a", 7, true), request("r", -time.Second), "", true, "Requested", "r"},
		"a look that found another credential":               {run("a", 7, true), nil, "CredentialChanged", false, "CredentialChanged", "new"},
		"a look that found something, while somebody waits":  {run("a", 7, true), request("r", time.Second), "Recovered", false, "Requested", "r"},
		"a served request doesn't give its id to a next run": {run("r", 7, true), request("r", -time.Second), "Recovered", false, "Recovered", "new"},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			row := &registryv1alpha1.ClusterTarget{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			row.Status.Run = tt.run
			known := &target{}
			if tt.watched {
				known.due(row, "")
			}
			row.Status.Request = tt.request
			got := known.due(row, tt.news)
			if tt.id == "new" && got.id != "" && got.id != "a" && got.id != "r" {
				got.id = "new"
			}
			if got.reason != tt.reason || got.id != tt.id {
				t.Errorf("got %q %q, want %q %q", got.reason, got.id, tt.reason, tt.id)
			}
		})
	}
}

func TestARunThatWaitsForItsTurnTakesUpWhatComesMeanwhile(t *testing.T) {
	finished := metav1.Now()
	row := &registryv1alpha1.ClusterTarget{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	row.Status.Run = &registryv1alpha1.ProbeRun{ID: "a", Generation: 1, FinishedAt: &finished}
	known := &target{}
	first := known.due(row, registryv1alpha1.ProbeRecovered)
	if !known.enqueueRun(row, first) {
		t.Fatal("it isn't new")
	}
	if again := known.due(row, ""); again != first {
		t.Errorf("asked again it's %v, was %v", again, first)
	}
	row.Status.Request = &registryv1alpha1.ProbeRequest{ID: "r", RequestedAt: finished}
	next := known.due(row, "")
	if known.enqueueRun(row, next) || known.run.order.id != "r" || known.run.order.reason != "Requested" {
		t.Errorf("it's %+v", known.run.order)
	}
	row.Generation = 2
	if next = known.due(row, ""); known.enqueueRun(row, next) || known.run.row.Generation != 2 || known.run.order.reason != "SpecChanged" {
		t.Errorf("it's %+v of generation %d", known.run.order, known.run.row.Generation)
	}
}
