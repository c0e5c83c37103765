package peers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// replica is a Receiver over a real index with cells eu and us, at a time that
// the test sets.
type replica struct {
	*Receiver
	index  *capacity.Index
	now    time.Time
	number uint64
}

func newReplica() *replica {
	r := &replica{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.index = capacity.New(capacity.Options{}, r.now)
	r.index.Sync([]string{"eu", "us"}, nil)
	r.Receiver = NewReceiver(ReceiverOptions{Instance: "me", Index: r.index, Metrics: NewMetrics(), Now: func() time.Time { return r.now }})
	return r
}

// next is the header of the sender's next batch.
func (r *replica) next(from string) header {
	r.number++
	return header{From: from, Number: r.number, SentAt: r.now}
}

func (r *replica) post(t *testing.T, body any) *httptest.ResponseRecorder {
	t.Helper()
	text, isText := body.(string)
	if !isText {
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/relay/v1/batch", strings.NewReader(text)))
	return w
}

// take posts a batch that is good as a whole.
func (r *replica) take(t *testing.T, b batch) {
	t.Helper()
	b.header = r.next("peer")
	if w := r.post(t, b); w.Code != http.StatusOK || w.Body.String() != `{"instance":"me"}`+"\n" {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
}

// full is how full each cell is in its worst dimension.
func (r *replica) full() map[string]string {
	levels := map[string]string{}
	for _, cell := range []string{"eu", "us"} {
		d, _ := r.index.Describe(cell, r.now)
		levels[cell] = fmt.Sprintf("%s %.0f%%", d.Health, 100*d.Utilisation.Ratio)
	}
	return levels
}

func (r *replica) expect(t *testing.T, eu, us string) {
	t.Helper()
	if diff := cmp.Diff(map[string]string{"eu": eu, "us": us}, r.full()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReceiverTakesWhatAPeerHeardAndPlaced(t *testing.T) {
	r := newReplica()
	r.expect(t, "Unknown 0%", "Unknown 0%")
	placed := wireReservation(cores("eu", 2000, r.now))
	r.take(t, batch{Reports: []report{{"eu", spec(1, r.now, "1")}, {"us", spec(1, r.now, "5")}}, Reservations: []reservation{placed}})
	r.expect(t, "Fresh 30%", "Fresh 50%")

	r.take(t, batch{Releases: []reservation{placed}})
	r.expect(t, "Fresh 10%", "Fresh 50%")
	r.take(t, batch{Releases: []reservation{placed}})
	r.expect(t, "Fresh 10%", "Fresh 50%")
	counted(t, r.options.Metrics, `cellcast_relay_messages_total{direction="received",kind="release",result="ok"} 1
cellcast_relay_messages_total{direction="received",kind="release",result="refused"} 1
cellcast_relay_messages_total{direction="received",kind="report",result="ok"} 2
cellcast_relay_messages_total{direction="received",kind="reservation",result="ok"} 1
`)
}

func TestReceiverReleasesOnlyWhatThatPeerReserved(t *testing.T) {
	r := newReplica()
	mine := cores("eu", 2000, r.now)
	r.take(t, batch{Reports: []report{{"eu", spec(1, r.now, "1")}}})
	r.index.Reserve(mine, r.now)
	r.take(t, batch{Releases: []reservation{wireReservation(mine)}})
	r.expect(t, "Fresh 30%", "Unknown 0%")
}

func TestReceiverReleasesWhatIsInTheFutureOfItsClock(t *testing.T) {
	r := newReplica()
	ahead := wireReservation(cores("eu", 2000, r.now.Add(10*time.Second)))
	r.take(t, batch{Reports: []report{{"eu", spec(1, r.now, "1")}}, Reservations: []reservation{ahead}})
	r.expect(t, "Fresh 30%", "Unknown 0%")
	r.now = r.now.Add(5 * time.Second)
	r.take(t, batch{Releases: []reservation{ahead}})
	r.expect(t, "Fresh 10%", "Unknown 0%")
}

func TestReceiverForgetsWhatTheIndexDoesntHold(t *testing.T) {
	r := newReplica()
	for range 100 {
		r.take(t, batch{Reservations: []reservation{wireReservation(cores("eu", 1, r.now))}})
	}
	r.now = r.now.Add(time.Minute)
	r.take(t, batch{Releases: []reservation{wireReservation(cores("eu", 1, r.now))}})
	if len(r.held.entries) != 0 || len(r.held.order) != 0 {
		t.Errorf("%d reservations and %d times are remembered", len(r.held.entries), len(r.held.order))
	}
}

func TestReceiverChecksEachMessageAnew(t *testing.T) {
	r := newReplica()
	r.take(t, batch{Reports: []report{{"eu", spec(5, r.now, "1")}}})
	over := spec(6, r.now, "1")
	over.Nodes = -1
	r.take(t, batch{
		Reports: []report{
			{"eu", spec(5, r.now, "9")},                      // a replay
			{"us", spec(1, r.now.Add(-91*time.Second), "9")}, // too old
			{"nowhere", spec(1, r.now, "9")},                 // not registered
			{"us", over},
		},
		Reservations: []reservation{
			wireReservation(cores("eu", 1000, r.now.Add(-61*time.Second))),
			wireReservation(cores("eu", 1000, r.now.Add(31*time.Second))),
			{Cell: "eu", At: r.now, Amounts: v1alpha1.ResourceList{"cpu": resource.MustParse("-1")}},
		},
	})
	r.expect(t, "Fresh 10%", "Unknown 0%")
	counted(t, r.options.Metrics, `cellcast_relay_messages_total{direction="received",kind="report",result="ok"} 1
cellcast_relay_messages_total{direction="received",kind="report",result="refused"} 4
cellcast_relay_messages_total{direction="received",kind="reservation",result="refused"} 3
`)
}

func TestReceiverTakesABatchOnce(t *testing.T) {
	r := newReplica()
	r.take(t, batch{Reports: []report{{"eu", spec(1, r.now, "1")}}})
	b := batch{header: r.next("peer"), Reservations: []reservation{wireReservation(cores("eu", 2000, r.now))}}
	if w := r.post(t, b); w.Code != http.StatusOK {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
	if w := r.post(t, b); w.Code != http.StatusConflict || w.Body.String() != "batch 2 follows batch 2: this one is a replay\n" {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	r.expect(t, "Fresh 30%", "Unknown 0%")
	counted(t, r.options.Metrics, `cellcast_relay_messages_total{direction="received",kind="report",result="ok"} 1
cellcast_relay_messages_total{direction="received",kind="reservation",result="ok"} 1
cellcast_relay_messages_total{direction="received",kind="reservation",result="refused"} 1
`)
}

func TestReceiverRefusesABatch(t *testing.T) {
	r := newReplica()
	stamp := r.now.Format(time.RFC3339Nano)
	many := make([]reservation, 257)
	for i := range many {
		many[i] = wireReservation(cores("eu", 1, r.now))
	}
	tests := map[string]struct {
		body any
		code int
		text string
	}{
		"that was sent 31 seconds ago": {batch{header: header{"p", 1, r.now.Add(-31 * time.Second)}}, http.StatusConflict,
			"the batch was sent 31s ago, and is taken for 30s"},
		"that was sent in 31 seconds": {batch{header: header{"p", 1, r.now.Add(31 * time.Second)}}, http.StatusConflict,
			"the batch was sent 31s in the future: set the clock of this replica or of that one"},
		"of nobody":                   {batch{header: header{"", 1, r.now}}, http.StatusBadRequest, "its field from doesn't name an instance"},
		"without a number":            {batch{header: header{"p", 0, r.now}}, http.StatusBadRequest, "it has no number"},
		"with more than 256 messages": {batch{header: header{"p", 1, r.now}, Reservations: many}, http.StatusBadRequest, "it has 257 messages; at most 256 are taken"},
		"with a field that we don't know": {`{"from":"p","number":1,"sentAt":"` + stamp + `","tokens":[]}`, http.StatusBadRequest,
			`it can't be read: unknown field "tokens"`},
		"with a field given twice": {`{"from":"p","number":1,"number":2,"sentAt":"` + stamp + `"}`, http.StatusBadRequest,
			`it can't be read: duplicate field "number"`},
		"that is no JSON":             {"hello", http.StatusBadRequest, "it can't be read: invalid character"},
		"that is larger than 1048576": {strings.Repeat(" ", 1<<20+1), http.StatusRequestEntityTooLarge, "the batch can't be read to its end"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := r.post(t, tc.body)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.text) {
				t.Errorf("answered %d %s, want %d %s", w.Code, w.Body, tc.code, tc.text)
			}
		})
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/relay/v1/batch", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a GET was answered %d", w.Code)
	}
}

func TestReceiverAnswersItselfAndTakesNothing(t *testing.T) {
	r := newReplica()
	w := r.post(t, batch{header: r.next("me"), Reports: []report{{"eu", spec(1, r.now, "1")}}})
	if w.Code != http.StatusOK || w.Body.String() != `{"instance":"me"}`+"\n" {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	r.expect(t, "Unknown 0%", "Unknown 0%")
}

func TestGuardForgetsSendersThatAreGone(t *testing.T) {
	g, now := guard{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range maxSenders {
		if err := g.admit(header{fmt.Sprint(i), 1, now}, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.admit(header{"one more", 1, now}, now); err == nil {
		t.Error("there is no bound")
	}
	now = now.Add(2*maxAge + 1)
	if err := g.admit(header{"one more", 1, now}, now); err != nil {
		t.Error(err)
	}
	if len(g) != 1 {
		t.Errorf("%d senders are remembered, want 1", len(g))
	}
}
