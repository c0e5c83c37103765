package events

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/refusal"
)

var until = time.Date(2026, 1, 1, 12, 10, 0, 0, time.FixedZone("CET", 3600))

func TestWhatARecordSaysAboutACell(t *testing.T) {
	asked := audit.Record{RequestID: "r-1", User: "pipeline:https://ci#acme", Workload: "payments/api", Policy: "acme", Cell: "prod-eu",
		Namespace: "payments", ServiceAccount: "deployer", ExpiresAt: until, JTI: "5b1c", TokenSHA256: "9f86d0"}
	as := func(event audit.Event, outcome audit.Outcome, code refusal.Code, message string) audit.Record {
		r := asked
		r.Event, r.Outcome, r.Refusal, r.Message = event, outcome, code, message
		return r
	}
	dry := as(audit.EventPlacement, audit.OutcomeAllowed, "", "")
	dry.DryRun = true
	revoked := as(audit.EventRevocation, audit.OutcomeAllowed, "", "")
	revoked.Revoked = true
	sly := as(audit.EventPlacement, audit.OutcomeAllowed, "", "")
	sly.User = "x\"\n\x1b[31mroot"

	tests := map[string]struct {
		record audit.Record
		want   string
	}{
		"a placement": {as(audit.EventPlacement, audit.OutcomeAllowed, "", ""),
			`Normal Placed workload payments/api, by policy acme, for "pipeline:https://ci#acme"`},
		"a name that tries to be more than a name": {sly,
			`Normal Placed workload payments/api, by policy acme, for "x\"\n\x1b[31mroot"`},
		"a dry run places nothing":                         {dry, ""},
		"a refused placement may name a cell of anybody's": {as(audit.EventPlacement, audit.OutcomeRefused, refusal.NoPolicy, "no"), ""},
		"a mint": {as(audit.EventMint, audit.OutcomeAllowed, "", ""),
			`Normal Minted a credential of payments/deployer until 2026-01-01T11:10:00Z for workload payments/api, by policy acme, for "pipeline:https://ci#acme"`},
		"a cell that didn't mint": {as(audit.EventMint, audit.OutcomeRefused, refusal.MintFailed, "the cell said 403"),
			`Warning MintFailed no credential of payments/deployer for workload payments/api, by policy acme, for "pipeline:https://ci#acme": MintFailed: the cell said 403`},
		"a hub that failed": {as(audit.EventMint, audit.OutcomeFailed, "", ""),
			`Warning MintFailed no credential of payments/deployer for workload payments/api, by policy acme, for "pipeline:https://ci#acme": the hub failed; its log has the fault under request r-1`},
		"nothing to revoke": {as(audit.EventRevocation, audit.OutcomeAllowed, "", ""), ""},
		"a revocation": {revoked,
			`Normal Revoked a credential in namespace payments was ended by "pipeline:https://ci#acme"`},
		"a cell that didn't revoke": {as(audit.EventRevocation, audit.OutcomeRefused, refusal.MintUnavailable, "away"),
			`Warning RevocationFailed a credential in namespace payments could not be ended for "pipeline:https://ci#acme": MintUnavailable: away`},
		"a caller that may not revoke":  {as(audit.EventRevocation, audit.OutcomeRefused, refusal.NoPolicy, "no"), ""},
		"a report that wasn't taken":    {as(audit.EventReportRefused, audit.OutcomeRefused, refusal.InvalidRequest, "no"), ""},
		"a token that wasn't believed":  {as(audit.EventAuthenticationFailed, audit.OutcomeRefused, "", ""), ""},
		"a row that was kept out":       {as(audit.EventAdmissionRefused, audit.OutcomeRefused, "", ""), ""},
		"a row that the hub changed":    {as(audit.EventRowChanged, audit.OutcomeAllowed, "", ""), ""},
		"an event that is none of them": {as("other", audit.OutcomeAllowed, "", ""), ""},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			got, ok := describe(tt.record)
			if text := strings.TrimSpace(got.kind + " " + got.reason + " " + got.message); text != tt.want || ok != (tt.want != "") {
				t.Errorf("got %v %q\nwant %q", ok, text, tt.want)
			}
		})
	}
}

func TestAMessageIsNoLongerThanAnAPIServerTakes(t *testing.T) {
	got, _ := describe(audit.Record{Event: audit.EventMint, Outcome: audit.OutcomeRefused, Refusal: refusal.MintFailed, Message: strings.Repeat("é", 4000)})
	if len(got.message) > 1024 || len(got.message) < 1020 || !utf8.ValidString(got.message) || !strings.HasSuffix(got.message, "é…") {
		t.Errorf("%d bytes, ending in %q", len(got.message), got.message[len(got.message)-8:])
	}
}

// world is a hub with one cell and an API server.
func world() (*fake.Clientset, *Events) {
	api := fake.NewClientset()
	row := &registryv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod-eu", UID: "u-1"}}
	return api, New(Options{
		Client:   api.CoreV1(),
		Cluster:  func(name string) (*registryv1alpha1.Cluster, bool) { return row, name == row.Name },
		Instance: "cellcast-hub-0",
	})
}

func placed(workload string) audit.Record {
	return audit.Record{Event: audit.EventPlacement, Outcome: audit.OutcomeAllowed, Cell: "prod-eu", Workload: workload, Policy: "acme", User: "dana"}
}

func write(t *testing.T, e *Events, records ...audit.Record) {
	t.Helper()
	for _, r := range records {
		if err := e.Write(r); err != nil {
			t.Fatal(err)
		}
	}
}

// shown is what kubectl describe would show: reason, count and message.
func shown(t *testing.T, api *fake.Clientset) []string {
	t.Helper()
	list, err := api.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range list.Items {
		if e.InvolvedObject != (corev1.ObjectReference{APIVersion: "registry.cellcast.io/v1alpha1", Kind: "Cluster", Name: "prod-eu", UID: "u-1"}) ||
			e.Source != (corev1.EventSource{Component: "cellcast-hub", Host: "cellcast-hub-0"}) {
			t.Errorf("an Event of %+v about %+v", e.Source, e.InvolvedObject)
		}
		lines = append(lines, fmt.Sprintf("%s x%d %s", e.Reason, e.Count, e.Message))
	}
	return lines
}

func TestEventsOfOneCellAreJoinedAndHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, e := world()
		go e.Run(t.Context())
		step := func(r audit.Record) {
			time.Sleep(time.Millisecond) // the name of an Event is its time
			write(t, e, r)
			synctest.Wait()
		}
		step(placed("payments/api"))
		step(placed("payments/api"))
		unknown := placed("payments/api")
		unknown.Cell = "gone"
		step(unknown)
		want := []string{`Placed x2 workload payments/api, by policy acme, for "dana"`}
		if diff := cmp.Diff(want, shown(t, api)); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}

		for i := range 40 {
			step(placed(fmt.Sprintf("payments/job-%d", i)))
		}
		if lines := shown(t, api); len(lines) > 11 || !strings.Contains(strings.Join(lines, "\n"), "combined from similar events") {
			t.Errorf("%d Events:\n%s", len(lines), strings.Join(lines, "\n"))
		}
		step(audit.Record{Event: audit.EventMint, Outcome: audit.OutcomeRefused, Refusal: refusal.MintFailed, Cell: "prod-eu", User: "dana"})
		if lines := strings.Join(shown(t, api), "\n"); !strings.Contains(lines, "MintFailed x1") {
			t.Errorf("the placements used up the failed mint's:\n%s", lines)
		}
		// The spam filter lets 25 of one reason through, and one more each five
		// minutes.
		if diff := cmp.Diff(map[string]uint64{"written": 26, "aggregated": 17, "dropped": 0, "failed": 0}, e.Results()); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	})
}

func TestAnEventThatIsGoneIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, e := world()
		go e.Run(t.Context())
		write(t, e, placed("payments/api"))
		synctest.Wait()
		list, err := api.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%v, %d Events", err, len(list.Items))
		}
		if err := api.CoreV1().Events("default").Delete(t.Context(), list.Items[0].Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		write(t, e, placed("payments/api"))
		synctest.Wait()
		if diff := cmp.Diff([]string{`Placed x2 workload payments/api, by policy acme, for "dana"`}, shown(t, api)); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
	})
}

func TestAnAPIServerThatIsAwayHoldsUpNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, e := world()
		away := make(chan struct{})
		api.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-away
			return true, nil, errors.New("connection refused")
		})
		go e.Run(t.Context())
		write(t, e, placed("payments/api"))
		synctest.Wait() // the first is under way, and not in the queue any more
		began := time.Now()
		for i := range 300 {
			write(t, e, placed(fmt.Sprintf("payments/job-%d", i)))
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("requests waited for %s", took)
		}
		close(away)
		synctest.Wait()
		got := e.Results()
		if got["dropped"] != 300-maxWaiting || got["failed"] != 25 || got["failed"]+got["aggregated"] != maxWaiting+1 || got["written"] != 0 {
			t.Errorf("got %v", got)
		}
	})
}
