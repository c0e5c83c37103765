package change

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/pkg/audit"
)

func TestBetweenNamesWhatDiffers(t *testing.T) {
	trusted := metav1.Condition{Type: "TrustEstablished", Status: "True", Reason: "Authenticated", Message: "as a"}
	lost := metav1.Condition{Type: "TrustEstablished", Status: "False", Reason: "Unreachable"}
	refused := metav1.Condition{Type: "TrustEstablished", Status: "False", Reason: "Unauthenticated"}
	live := metav1.Condition{Type: "AcceptingPlacements", Status: "True", Reason: "Live"}
	otherWords := trusted
	otherWords.Message = "as b"

	tests := map[string]struct {
		before, after []metav1.Condition
		want          []audit.Change
	}{
		"nothing":         {[]metav1.Condition{trusted, live}, []metav1.Condition{live, trusted}, nil},
		"a message alone": {[]metav1.Condition{trusted}, []metav1.Condition{otherWords}, nil},
		"a status":        {[]metav1.Condition{trusted, live}, []metav1.Condition{lost, live}, []audit.Change{{Condition: "TrustEstablished", From: "True", FromReason: "Authenticated", To: "False", ToReason: "Unreachable"}}},
		"a reason alone":  {[]metav1.Condition{lost}, []metav1.Condition{refused}, []audit.Change{{Condition: "TrustEstablished", From: "False", FromReason: "Unreachable", To: "False", ToReason: "Unauthenticated"}}},
		"a row that is new": {nil, []metav1.Condition{trusted, live}, []audit.Change{
			{Condition: "AcceptingPlacements", To: "True", ToReason: "Live"}, {Condition: "TrustEstablished", To: "True", ToReason: "Authenticated"}}},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Between(tt.before, tt.after)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

type trail struct {
	records []audit.Record
	err     error
}

func (t *trail) Write(r audit.Record) error { t.records = append(t.records, r); return t.err }

func TestRecordWritesAChangeAndNothingElse(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	live := []metav1.Condition{{Type: "AcceptingPlacements", Status: "True", Reason: "Live"}}
	row := audit.Record{Kind: "Cluster", Name: "a", Cell: "a"}

	full := &trail{err: errors.New("no space left")}
	if err := Record(full, row, live, live, noon); err != nil || len(full.records) != 0 {
		t.Errorf("got %v and %v for no change", err, full.records)
	}
	if err := Record(full, row, nil, live, noon); !errors.Is(err, full.err) {
		t.Errorf("got %v, want the trail's error", err)
	}
	want := []audit.Record{{
		Time: noon, Event: audit.EventRowChanged, Outcome: audit.OutcomeAllowed, Kind: "Cluster", Name: "a", Cell: "a",
		Changes: []audit.Change{{Condition: "AcceptingPlacements", To: "True", ToReason: "Live"}},
	}}
	if diff := cmp.Diff(want, full.records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}
