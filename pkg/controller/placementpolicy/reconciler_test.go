package placementpolicy

import (
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

type view map[string]Standing

func (v view) Standing(name string) (Standing, bool) { s, ok := v[name]; return s, ok }

// trail keeps what was recorded.
type trail struct{ records []audit.Record }

func (t *trail) Write(r audit.Record) error { t.records = append(t.records, r); return nil }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

type issuers []string

func (i issuers) Issuers() []string { return i }

func TestTheStatusIsHowTheHubReadsThePolicy(t *testing.T) {
	tests := map[string]struct {
		standing Standing
		want     map[string]string
	}{
		"it reaches two cells": {Standing{Generation: 3, Matched: 2, Issuers: []string{"https://ci"}},
			map[string]string{"Ready": "True ReachesCells", "IssuerTrusted": "True IssuersTrusted", "Ambiguous": "False Unique"}},
		"its selector matches nothing": {Standing{Generation: 3},
			map[string]string{"Ready": "False MatchesNoCell", "IssuerTrusted": "True NoIssuer", "Ambiguous": "False Unique"}},
		"it doesn't compile": {Standing{Generation: 3, Invalid: "spec.subjects: Required value"},
			map[string]string{"Ready": "False Invalid", "IssuerTrusted": "True NoIssuer", "Ambiguous": "False Unique"}},
		"its issuer isn't trusted, by one letter": {Standing{Generation: 3, Matched: 1, Issuers: []string{"https://ci/"}},
			map[string]string{"Ready": "True ReachesCells", "IssuerTrusted": "False IssuerUnknown", "Ambiguous": "False Unique"}},
		"another ties with it": {Standing{Generation: 3, Matched: 1, Tied: []string{"other"}},
			map[string]string{"Ready": "True ReachesCells", "IssuerTrusted": "True NoIssuer", "Ambiguous": "True Tied"}},
		"the view hasn't read this generation yet": {Standing{Generation: 2, Matched: 1}, map[string]string{}},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := registryv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			row := &registryv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 3}}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(row).WithStatusSubresource(row).Build()
			var recorded trail
			r := &Reconciler{Client: api, View: view{"p": tt.standing}, Issuers: issuers{"https://ci"}, Audit: &recorded, Clock: clocktesting.NewFakePassiveClock(noon)}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "p"}}); err != nil {
				t.Fatal(err)
			}
			got := &registryv1alpha1.PlacementPolicy{}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(row), got); err != nil {
				t.Fatal(err)
			}
			conditions := map[string]string{}
			for _, c := range got.Status.Conditions {
				conditions[c.Type] = string(c.Status) + " " + c.Reason
			}
			if diff := cmp.Diff(tt.want, conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			// The row is new to the hub, so that each condition is a change.
			changes := map[string]string{}
			for _, r := range recorded.records {
				if r.Kind != "PlacementPolicy" || r.Name != "p" || !r.Time.Equal(noon) {
					t.Errorf("recorded %+v", r)
				}
				for _, c := range r.Changes {
					changes[c.Condition] = c.To + " " + c.ToReason
				}
			}
			if diff := cmp.Diff(tt.want, changes); diff != "" {
				t.Errorf("recorded changes (-want +got):\n%s", diff)
			}
			if len(tt.want) > 0 && int(got.Status.MatchedClusters) != tt.standing.Matched {
				t.Errorf("%d cells", got.Status.MatchedClusters)
			}
		})
	}
}
