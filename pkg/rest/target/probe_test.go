package target

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	registryclient "cellcast.io/cellcast/generated/clientset/versioned/typed/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/refusal"
)

var noon = time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)

// store is the hub's API server with one row in it. A patch holds only for the
// row as it is, and may write status.request and nothing else.
type store struct {
	registryclient.ClusterTargetInterface

	mu      sync.Mutex
	row     *registryv1alpha1.ClusterTarget // nil: gone
	patches int
	before  func(*store) // somebody else, before a patch gets there
	fault   error
}

func (s *store) ClusterTargets(string) registryclient.ClusterTargetInterface { return s }

func (s *store) Get(_ context.Context, name string, _ metav1.GetOptions) (*registryv1alpha1.ClusterTarget, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.row == nil {
		return &registryv1alpha1.ClusterTarget{}, apierrors.NewNotFound(registryv1alpha1.Resource("clustertargets"), name)
	}
	return s.row.DeepCopy(), nil
}

func (s *store) Patch(_ context.Context, name string, kind types.PatchType, data []byte, _ metav1.PatchOptions, subresources ...string) (*registryv1alpha1.ClusterTarget, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var patch struct {
		Metadata struct{ ResourceVersion string }
		Status   struct {
			Request *registryv1alpha1.ProbeRequest
		}
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&patch); err != nil || kind != types.MergePatchType || len(subresources) != 1 || subresources[0] != "status" {
		return nil, fmt.Errorf("%s of %v: %w", data, subresources, err)
	}
	s.patches++
	if s.before != nil {
		s.before(s)
	}
	switch {
	case s.fault != nil:
		return nil, s.fault
	case s.row == nil:
		return nil, apierrors.NewNotFound(registryv1alpha1.Resource("clustertargets"), name)
	case patch.Metadata.ResourceVersion != s.row.ResourceVersion:
		return nil, apierrors.NewConflict(registryv1alpha1.Resource("clustertargets"), name, errors.New("the object has been modified"))
	}
	s.row.Status.Request = patch.Status.Request
	s.touch()
	return s.row.DeepCopy(), nil
}

// touch gives the row its next version.
func (s *store) touch() {
	n, _ := strconv.Atoi(s.row.ResourceVersion)
	s.row.ResourceVersion = strconv.Itoa(n + 1)
}

// run began a minute ago.
func run(id string, ended bool) *registryv1alpha1.ProbeRun { return runSince(time.Minute, id, ended) }

func runSince(ago time.Duration, id string, ended bool) *registryv1alpha1.ProbeRun {
	r := &registryv1alpha1.ProbeRun{ID: id, StartedAt: metav1.NewTime(noon.Add(-ago))}
	if ended {
		r.FinishedAt = &metav1.Time{Time: noon}
	}
	return r
}

func request(id string, ago time.Duration) *registryv1alpha1.ProbeRequest {
	return &registryv1alpha1.ProbeRequest{ID: id, RequestedAt: metav1.NewTime(noon.Add(-ago))}
}

func TestWhatAQuestionForAProbeJoins(t *testing.T) {
	for sentence, tt := range map[string]struct {
		run     *registryv1alpha1.ProbeRun
		request *registryv1alpha1.ProbeRequest
		joins   string // empty: it asks for a run of its own
	}{
		"nothing, on a row that is new":                            {nil, nil, ""},
		"a run that is under way":                                  {run("r-1", false), nil, "r-1"},
		"a run that was asked for and is under way":                {run("r-1", false), request("r-1", 2*time.Minute), "r-1"},
		"the run before the one that was asked for":                {run("r-1", false), request("r-2", time.Second), "r-1"},
		"nothing, after a run that has ended":                      {run("r-1", true), nil, ""},
		"nothing, after the run that was asked for":                {run("r-1", true), request("r-1", 2*time.Minute), ""},
		"nothing, after a run that came after it":                  {run("r-3", true), request("r-1", 2*time.Minute), ""},
		"the run that was asked for and hasn't begun":              {run("r-1", true), request("r-2", 30*time.Second), "r-2"},
		"the run that was asked for as the last one began":         {run("r-1", true), request("r-2", time.Minute), "r-2"},
		"the run that was asked for almost ten minutes ago":        {runSince(time.Hour, "r-1", true), request("r-2", 10*time.Minute-time.Second), "r-2"},
		"the first run, asked for and not begun":                   {nil, request("r-2", time.Minute), "r-2"},
		"nothing, where the leader died with what was asked of it": {runSince(time.Hour, "r-1", true), request("r-2", 10*time.Minute), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			row := ready()
			row.Status.Run, row.Status.Request = tt.run, tt.request
			s := &store{row: row.DeepCopy()}
			got, joined, err := Writer{s}.Request(t.Context(), row, "mine", noon)
			want := tt.joins
			if tt.joins == "" {
				want = "mine"
			}
			if err != nil || got != want || joined != (tt.joins != "") {
				t.Fatalf("got %q, joined: %t, %v; want %q", got, joined, err, want)
			}
			if tt.joins == "" {
				tt.request = request("mine", 0)
			}
			if diff := cmp.Diff(tt.request, s.row.Status.Request); diff != "" {
				t.Errorf("status.request (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.run, s.row.Status.Run); diff != "" {
				t.Errorf("status.run (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOfManyWhoAskAtOnceOneAsksAndTheOthersJoin(t *testing.T) {
	s := &store{row: ready()}
	cached := s.row.DeepCopy()
	var group sync.WaitGroup
	var mu sync.Mutex
	asked, ids := 0, map[string]bool{}
	for i := range 16 {
		group.Go(func() {
			got, joined, err := Writer{s}.Request(t.Context(), cached, fmt.Sprintf("r-%d", i), noon)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[got] = true
			if !joined {
				asked++
			}
		})
	}
	group.Wait()
	if asked != 1 || len(ids) != 1 || !ids[s.row.Status.Request.ID] {
		t.Errorf("%d asked for %v, and the row has %q", asked, ids, s.row.Status.Request.ID)
	}
}

func TestARowThatChangesUnderTheQuestion(t *testing.T) {
	for sentence, tt := range map[string]struct {
		before func(*store)
		check  func(got string, joined bool, err error) bool
		most   int // patches
	}{
		"is asked anew where the change is no run": {
			func(s *store) {
				if s.patches == 1 {
					s.touch()
				}
			},
			func(got string, joined bool, err error) bool { return err == nil && !joined && got == "mine" }, 2,
		},
		"is joined where the cache hadn't heard of its run": {
			func(s *store) { s.row.Status.Run = run("theirs", false); s.touch() },
			func(got string, joined bool, err error) bool { return err == nil && joined && got == "theirs" }, 1,
		},
		"is given up where it never rests": {
			func(s *store) { s.touch() },
			func(_ string, _ bool, err error) bool {
				r := refusal.As(err)
				return r != nil && r.Code == refusal.RateLimited
			}, maxTries,
		},
		"isn't there where it's gone": {
			func(s *store) { s.row = nil },
			func(_ string, _ bool, err error) bool {
				return err != nil && err.Error() == `clustertargets.cellcast.io "gpu" not found`
			}, 1,
		},
		"isn't there where another one has its name": {
			func(s *store) { s.row.UID = "uid-2"; s.touch() },
			func(_ string, _ bool, err error) bool {
				return err != nil && err.Error() == `clustertargets.cellcast.io "gpu" not found`
			}, 1,
		},
		"is a fault where the hub may not write it": {
			func(s *store) {
				s.fault = apierrors.NewForbidden(registryv1alpha1.Resource("clustertargets"), "gpu", errors.New("RBAC"))
			},
			func(_ string, _ bool, err error) bool {
				var status apierrors.APIStatus
				direct, _ := err.(apierrors.APIStatus) //nolint:errorlint // what would travel to the caller as it is
				return errors.As(err, &status) && direct == nil && refusal.As(err) == nil
			}, 1,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := &store{row: ready(), before: tt.before}
			got, joined, err := Writer{s}.Request(t.Context(), ready(), "mine", noon)
			if !tt.check(got, joined, err) || s.patches != tt.most {
				t.Errorf("got %q, joined: %t, %v after %d patches", got, joined, err, s.patches)
			}
		})
	}
}

// probes is the storage over a store.
func probes(s *store) (*ProbeStorage, *trail) {
	written := &trail{}
	return &ProbeStorage{
		Rows: rows{"team-a/gpu": s.row.DeepCopy()}, Requests: Writer{s}, Audit: written, Now: func() time.Time { return noon },
	}, written
}

func TestAQuestionForAProbeIsAnsweredAtOnceAndRecorded(t *testing.T) {
	s := &store{row: ready()}
	storage, written := probes(s)
	// RBAC alone says who may ask: the owner doesn't cover mallory.
	made, err := storage.Create(as(t, mallory), "gpu", &cellcastv1alpha1.TargetProbe{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := made.(*cellcastv1alpha1.TargetProbe)
	want := &cellcastv1alpha1.TargetProbe{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "gpu"},
		Status:     cellcastv1alpha1.TargetProbeStatus{RequestID: written.records[0].RequestID, Run: s.row.Status.Request.ID},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.Status.Run == "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
	joins, err := storage.Create(as(t, dana), "gpu", &cellcastv1alpha1.TargetProbe{}, nil, nil)
	if err != nil || joins.(*cellcastv1alpha1.TargetProbe).Status.Run != got.Status.Run || !joins.(*cellcastv1alpha1.TargetProbe).Status.Joined {
		t.Errorf("the second caller gets %+v, %v", joins, err)
	}
	record := audit.Record{
		Event: audit.EventProbeRequested, Outcome: audit.OutcomeAllowed, CallerClass: "HubUser", User: "mallory",
		Kind: "ClusterTarget", Name: "team-a/gpu", Target: "target:uid-1", Run: got.Status.Run,
	}
	second := record
	second.User = "dana"
	if diff := cmp.Diff([]audit.Record{record, second}, written.records, ignored); diff != "" {
		t.Errorf("the trail (-want +got):\n%s", diff)
	}
}

func TestNoProbeIsAskedFor(t *testing.T) {
	lost := errors.New("no space left on device")
	for sentence, tt := range map[string]struct {
		arrange  func(*store)
		question cellcastv1alpha1.TargetProbe
		dry      bool
		lost     error
		want     string // the error; empty: none
		status   cellcastv1alpha1.TargetProbeStatus
		record   audit.Record
		asked    bool // it was, all the same
	}{
		"in a dry run": {
			dry:    true,
			record: audit.Record{Outcome: audit.OutcomeAllowed, DryRun: true, Target: "target:uid-1"},
		},
		"in a dry run that says what it would join": {
			arrange: func(s *store) { s.row.Status.Run = run("theirs", false) }, dry: true,
			status: cellcastv1alpha1.TargetProbeStatus{Run: "theirs", Joined: true},
			record: audit.Record{Outcome: audit.OutcomeAllowed, DryRun: true, Target: "target:uid-1", Run: "theirs"},
		},
		"of a target that is being deleted": {
			arrange: func(s *store) { s.row.DeletionTimestamp = &metav1.Time{Time: noon} },
			want:    "TargetNotReady: target team-a/gpu can't be probed: it is being deleted",
			record: audit.Record{Outcome: audit.OutcomeRefused, Target: "target:uid-1", Refusal: refusal.TargetNotReady,
				Message: "target team-a/gpu can't be probed: it is being deleted"},
		},
		"of two targets at once": {
			question: cellcastv1alpha1.TargetProbe{ObjectMeta: metav1.ObjectMeta{Name: "cpu"}},
			want:     `InvalidRequest: metadata.name: is "cpu", and the request was sent for target "gpu": name one target`,
			record: audit.Record{Outcome: audit.OutcomeRefused, Refusal: refusal.InvalidRequest,
				Message: `is "cpu", and the request was sent for target "gpu": name one target`},
		},
		"where the hub itself fails": {
			arrange: func(s *store) { s.fault = errors.New("etcd is away") },
			want:    "Internal error occurred: the hub failed to answer; its log says why under request id ",
			record:  audit.Record{Outcome: audit.OutcomeFailed, Target: "target:uid-1"},
		},
		"or it is, and the trail doesn't have it: the caller hears of that": {
			lost: lost, asked: true,
			want:   "PlacementUnavailable: the hub can't write its audit trail, and issues nothing that isn't in it",
			record: audit.Record{Outcome: audit.OutcomeAllowed, Target: "target:uid-1"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := &store{row: ready()}
			if tt.arrange != nil {
				tt.arrange(s)
			}
			storage, written := probes(s)
			written.lost = tt.lost
			options := &metav1.CreateOptions{}
			if tt.dry {
				options.DryRun = []string{metav1.DryRunAll}
			}
			made, err := storage.Create(as(t, dana), "gpu", &tt.question, nil, options)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				got := made.(*cellcastv1alpha1.TargetProbe).Status
				got.RequestID = ""
				if diff := cmp.Diff(tt.status, got); diff != "" {
					t.Errorf("the answer (-want +got):\n%s", diff)
				}
			} else if want := tt.want; err == nil || err.Error() != want && err.Error() != want+written.records[0].RequestID {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if (s.row.Status.Request != nil) != tt.asked {
				t.Errorf("status.request is %+v", s.row.Status.Request)
			}
			if tt.asked {
				tt.record.Run = s.row.Status.Request.ID
			}
			tt.record.Event, tt.record.CallerClass, tt.record.User = audit.EventProbeRequested, "HubUser", "dana"
			tt.record.Kind, tt.record.Name = "ClusterTarget", "team-a/gpu"
			if diff := cmp.Diff([]audit.Record{tt.record}, written.records, ignored); diff != "" {
				t.Errorf("the trail (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProbeOfATargetThatIsNotThere(t *testing.T) {
	storage, written := probes(&store{row: ready()})
	storage.Rows = rows{}
	_, err := storage.Create(as(t, dana), "gpu", &cellcastv1alpha1.TargetProbe{}, nil, nil)
	if err == nil || err.Error() != `clustertargets.cellcast.io "gpu" not found` {
		t.Errorf("got %v", err)
	}
	want := []audit.Record{{
		Event: audit.EventProbeRequested, Outcome: audit.OutcomeRefused, Message: "not found",
		CallerClass: "HubUser", User: "dana", Kind: "ClusterTarget", Name: "team-a/gpu",
	}}
	if diff := cmp.Diff(want, written.records, ignored); diff != "" {
		t.Errorf("the trail (-want +got):\n%s", diff)
	}
}
