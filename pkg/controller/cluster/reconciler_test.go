package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
)

// cells answers what a test says.
type cells struct{ trust, keys Finding }

func (c cells) Trust(context.Context, *registryv1alpha1.Cluster) Finding        { return c.trust }
func (c cells) ReporterKeys(context.Context, *registryv1alpha1.Cluster) Finding { return c.keys }

// trail keeps what was recorded.
type trail struct{ records []audit.Record }

func (t *trail) Write(r audit.Record) error { t.records = append(t.records, r); return nil }

func reconcile(t *testing.T, row *registryv1alpha1.Cluster, c Cells, now time.Time) (*registryv1alpha1.Cluster, ctrl.Result) {
	t.Helper()
	got, result, _ := reconcileAudited(t, row, c, now)
	return got, result
}

func reconcileAudited(t *testing.T, row *registryv1alpha1.Cluster, c Cells, now time.Time) (*registryv1alpha1.Cluster, ctrl.Result, []audit.Record) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := registryv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(row).WithStatusSubresource(row).Build()
	var recorded trail
	r := &Reconciler{Client: api, Cells: c, Audit: &recorded, Clock: clocktesting.NewFakePassiveClock(now)}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: row.Name}})
	if err != nil {
		t.Fatal(err)
	}
	got := &registryv1alpha1.Cluster{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(row), got); err != nil {
		t.Fatal(err)
	}
	return got, result, recorded.records
}

func TestReconcileSaysWhatItFound(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	good := Finding{true, registryv1alpha1.ReasonAuthenticated, "yes"}
	bad := Finding{false, registryv1alpha1.ReasonUnreachable, "no"}
	none := Finding{false, registryv1alpha1.ReasonNoReporter, "none"}
	tests := map[string]struct {
		state registryv1alpha1.ClusterState
		cells cells
		want  map[string]string // condition: status and reason
		again time.Duration
	}{
		"a live cell that trusts the hub": {registryv1alpha1.StateLive, cells{good, good},
			map[string]string{"AcceptingPlacements": "True Live", "TrustEstablished": "True Authenticated", "ReporterTrusted": "True Authenticated"}, recheck},
		"a draining cell": {registryv1alpha1.StateDraining, cells{good, good},
			map[string]string{"AcceptingPlacements": "False Draining", "TrustEstablished": "True Authenticated", "ReporterTrusted": "True Authenticated"}, recheck},
		"a cell that is away is looked at again soon": {registryv1alpha1.StateLive, cells{bad, bad},
			map[string]string{"AcceptingPlacements": "True Live", "TrustEstablished": "False Unreachable", "ReporterTrusted": "False Unreachable"}, retry},
		"a cell without a reporter isn't hurried": {registryv1alpha1.StateDark, cells{good, none},
			map[string]string{"AcceptingPlacements": "False Dark", "TrustEstablished": "True Authenticated", "ReporterTrusted": "False NoReporter"}, recheck},
		"an unknown state accepts nothing": {"ASLEEP", cells{good, good},
			map[string]string{"AcceptingPlacements": "False Invalid", "TrustEstablished": "True Authenticated", "ReporterTrusted": "True Authenticated"}, recheck},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			row := &registryv1alpha1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 7},
				Spec:       registryv1alpha1.ClusterSpec{State: tt.state},
			}
			got, result := reconcile(t, row, tt.cells, noon)
			conditions := map[string]string{}
			for _, c := range got.Status.Conditions {
				conditions[c.Type] = string(c.Status) + " " + c.Reason
			}
			if diff := cmp.Diff(tt.want, conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if got.Status.ObservedGeneration != 7 || !got.Status.StateSince.Time.Equal(noon) || result.RequeueAfter != tt.again {
				t.Errorf("generation %d, since %v, again in %s", got.Status.ObservedGeneration, got.Status.StateSince, result.RequeueAfter)
			}
		})
	}
}

func TestAChangeOfTheRowIsRecordedOnce(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	good := Finding{true, registryv1alpha1.ReasonAuthenticated, "yes"}
	row := &registryv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 7},
		Spec:       registryv1alpha1.ClusterSpec{State: registryv1alpha1.StateLive},
	}
	row, _, _ = reconcileAudited(t, row, cells{good, good}, noon)

	away := Finding{false, registryv1alpha1.ReasonUnreachable, "no"}
	row.ResourceVersion = ""
	row, _, recorded := reconcileAudited(t, row, cells{away, good}, noon)
	want := []audit.Record{{
		Time: noon, Event: audit.EventRowChanged, Outcome: audit.OutcomeAllowed, Kind: "Cluster", Name: "a", Cell: "a",
		Changes: []audit.Change{{Condition: "TrustEstablished", From: "True", FromReason: "Authenticated", To: "False", ToReason: "Unreachable"}},
	}}
	if diff := cmp.Diff(want, recorded); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}

	row.ResourceVersion = ""
	if _, _, recorded = reconcileAudited(t, row, cells{away, good}, noon); len(recorded) != 0 {
		t.Errorf("nothing changed, and it recorded %v", recorded)
	}
}

func TestStateSinceStaysWhileTheStateDoes(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	since := metav1.NewTime(noon.Add(-time.Hour))
	row := &registryv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       registryv1alpha1.ClusterSpec{State: registryv1alpha1.StateDraining},
		Status:     registryv1alpha1.ClusterStatus{ObservedState: registryv1alpha1.StateDraining, StateSince: &since},
	}
	got, _ := reconcile(t, row, cells{}, noon)
	if !got.Status.StateSince.Time.Equal(since.Time) {
		t.Errorf("the drain began at %s and is said to have begun at %s", since, got.Status.StateSince)
	}
	row.Spec.State = registryv1alpha1.StateLive
	if got, _ = reconcile(t, row, cells{}, noon); !got.Status.StateSince.Time.Equal(noon) {
		t.Errorf("the new state is said to have begun at %s", got.Status.StateSince)
	}
}

func TestARowThatIsGoneIsNothing(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := registryv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).Build()}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "gone"}}); err != nil {
		t.Error(err)
	}
}
