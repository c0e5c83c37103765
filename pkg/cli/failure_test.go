package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/refusal"
)

// Every refusal, through the wire.
func TestExitCodeAndAdviceOfEveryRefusal(t *testing.T) {
	exits := map[refusal.Code]int{
		refusal.NoPolicy:               3,
		refusal.DarkNotPermitted:       3,
		refusal.CellChoiceNotPermitted: 3,
		refusal.NoPermittedCells:       3,
		refusal.InvalidRequest:         3,
		refusal.NoEligibleCells:        4,
		refusal.CapacityUnknown:        4,
		refusal.PlacementUnavailable:   4,
		refusal.RateLimited:            4,
		refusal.MintUnavailable:        5,
		refusal.MintFailed:             5,
	}
	c := newCaller(t)
	for _, m := range refusal.Meanings() {
		t.Run(string(m.Code), func(t *testing.T) {
			want, known := exits[m.Code]
			if !known {
				t.Fatal("the table of exit codes lacks this refusal")
			}
			if m.MayClear == (want == 3) {
				t.Errorf("exit %d says the opposite of MayClear %v", want, m.MayClear)
			}
			next := m.Next
			if m.MayClear {
				next += " The hub says to wait " + m.RetryAfter.String() + "."
			}
			got := c.run("cellcast", "place", "refused/"+string(m.Code), "-o", "json")
			if diff := cmp.Diff(answerOf{
				code: want,
				err:  "Error: " + string(m.Code) + ": the fake says so\n" + next + "\nRequest id: " + requestID + "\n",
			}, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExitCodeAndAdviceOfEverythingElse(t *testing.T) {
	id := "Request id: " + requestID + "\n"
	for name, test := range map[string]struct {
		workload string
		args     []string
		other    bool // by the kubeconfig's door
		want     answerOf
	}{
		"RBAC forbids a person": {workload: "forbidden", other: true, want: answerOf{3, "",
			`Error: placements.cellcast.io is forbidden: User "me" cannot create it` + "\n" +
				"The hub's RBAC says so, not a PlacementPolicy: ask the platform team for a role that permits it.\n" + id}},
		"RBAC forbids a pipeline": {workload: "forbidden", want: answerOf{3, "",
			`Error: placements.cellcast.io is forbidden: User "me" cannot create it` + "\n" +
				"The hub's RBAC says so, not a PlacementPolicy: ask the platform team for a role that permits it to the group cellcast.io:pipelines.\n" + id}},
		"a refusal that only a newer hub knows": {workload: "newer", want: answerOf{3, "",
			"Error: NoPolicy: a word from the future\nUpdate cellcast: this version doesn't know the refusal.\n" + id}},
		"a fault of the hub": {workload: "fault", want: answerOf{1, "",
			"Error: the hub answered with HTTP 500: Internal error occurred: the hub failed to answer; its log says why under request id " + requestID + "\n" + id}},
		"a bare 429 of priority and fairness": {workload: "throttled", want: answerOf{4, "",
			"Error: RateLimited: the server has received too many requests and has asked us to try again later (post placements.cellcast.io)\n" +
				"Retry after the time that the answer names. The hub says to wait 7s.\n" + id}},
		"the aggregator's 503": {workload: "gateway", other: true, want: answerOf{4, "",
			"Error: the hub's cellcast API isn't available (HTTP 503): the server is currently unable to handle the request (post placements.cellcast.io)\n" +
				"Retry; if it lasts, see why: kubectl get apiservice v1alpha1.cellcast.io -o yaml\n" + id}},
		"a gateway's 503": {workload: "gateway", want: answerOf{4, "",
			"Error: the hub's cellcast API isn't available (HTTP 503): the server is currently unable to handle the request (post placements.cellcast.io)\n" +
				"Retry; if it lasts, the platform team should look at the cellcast-hub pods and at what is in front of them.\n" + id}},
		"a cluster without cellcast": {workload: "missing", other: true, want: answerOf{1, "",
			"Error: this cluster serves no cellcast API\n" +
				"Check that the context is the hub's; if it is, cellcast isn't installed or isn't registered: kubectl get apiservice v1alpha1.cellcast.io\n" + id}},
		"a server that is no hub": {workload: "missing", want: answerOf{1, "",
			"Error: HUB serves no cellcast API\nCheck --hub: it's the URL of the hub's own port, without a path.\n" + id}},
		"a hub that doesn't answer in time": {workload: "slow", args: []string{"--timeout", "2s"}, want: answerOf{4, "",
			"Error: the hub didn't answer: context deadline exceeded\nIt had 2s (--timeout). Retry, or check the way to HUB.\n"}},
		"an answer that breaks off": {workload: "cut", want: answerOf{4, "",
			"Error: the hub didn't answer: unexpected error when reading response body. Please retry. Original error: unexpected EOF\n" +
				"Retry, or check the way to HUB.\n" + id}},
		"an answer without a cell": {workload: "no-cell", want: answerOf{1, "", "Error: the hub answered without a cell; is it a hub?\n"}},
		"an answer without the credential": {workload: "tokenless", want: answerOf{5, "",
			"Error: the hub chose cell \"eu-1\" and returned no credential for it\nShow this to the platform team: the hub should have refused instead.\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t)
			args := append([]string{"cellcast", "place", test.workload, "-o", "json"}, test.args...)
			if test.other {
				args = append(args, "--kubeconfig", c.kubeconfig())
			}
			got := c.run(args...)
			test.want.err = strings.ReplaceAll(test.want.err, "HUB", c.hub.URL)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if asked, _ := c.hub.counts(); asked != 1 {
				t.Errorf("asked %d times, want once", asked)
			}
		})
	}
}

func TestATokenThatTheHubDoesNotAccept(t *testing.T) {
	for name, test := range map[string]struct{ claims, says string }{
		"of another issuer": {`{"iss":"https://other.example.com","aud":["a","b"],"exp":1767323645}`,
			`from "https://other.example.com", for "a, b", and expires in 10m.`},
		"that has expired": {`{"iss":"https://ci.example.com","aud":"cellcast.io/hub","exp":1767322745}`,
			`from "https://ci.example.com", for "cellcast.io/hub", and expired 5m ago: get a new one.`},
		"without an expiry": {`{"iss":"https://ci.example.com","aud":"cellcast.io/hub"}`,
			`from "https://ci.example.com", for "cellcast.io/hub", and names no expiry.`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t)
			c.file("oidc.jwt", jwt(test.claims))
			want := answerOf{3, "", "Error: the hub didn't accept the token in " + c.token + "\n" +
				"Check issuer, audience and expiry against the hub's AuthenticationConfiguration: the token says that it's " + test.says + "\n" +
				"Request id: " + requestID + "\n"}
			if diff := cmp.Diff(want, c.run("cellcast", "place", "x"), cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAKubeconfigThatTheHubDoesNotAccept(t *testing.T) {
	c := newCaller(t)
	config := c.kubeconfig()
	c.file("oidc.jwt", "old")
	want := answerOf{3, "", "Error: the hub's API server didn't accept the credentials of the kubeconfig\n" +
		"Log in again; kubectl auth whoami shows whether it worked.\nRequest id: " + requestID + "\n"}
	if diff := cmp.Diff(want, c.run("cellcast", "cells", "--kubeconfig", config), cmp.AllowUnexported(answerOf{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAHubOfAnotherCA(t *testing.T) {
	c := newCaller(t)
	delete(c.env, "CELLCAST_HUB_CA")
	got := c.run("cellcast", "cells")
	if got.code != 1 || !strings.HasPrefix(got.err, "Error: there is no trusted connection to the hub: tls: failed to verify certificate:") ||
		!strings.HasSuffix(got.err, "Check --hub-ca: it must hold the CA of the hub's certificate, and --hub a name that is in it.\n") {
		t.Errorf("got %d\n%s", got.code, got.err)
	}
}

func TestAServerWithoutTLS(t *testing.T) {
	c := newCaller(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	c.env["CELLCAST_HUB"] = "https" + strings.TrimPrefix(plain.URL, "http")
	got := c.run("cellcast", "cells")
	if got.code != 1 || !strings.HasPrefix(got.err, "Error: there is no trusted connection to the hub: http: server gave HTTP response to HTTPS client\n") {
		t.Errorf("got %d\n%s", got.code, got.err)
	}
}

func TestAHubThatIsNotThere(t *testing.T) {
	c := newCaller(t)
	c.hub.Close()
	got := c.run("cellcast", "cells")
	if got.code != 4 || !strings.Contains(got.err, "connection refused\nRetry, or check the way to "+c.hub.URL+".\n") {
		t.Errorf("got %d\n%s", got.code, got.err)
	}
}

// A redirect must not take the caller's token along.
func TestARedirectIsNotFollowed(t *testing.T) {
	c := newCaller(t)
	reached := false
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer elsewhere.Close()
	redirecting := httptest.NewTLSServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()
	c.env["CELLCAST_HUB"] = redirecting.URL // both have httptest's one certificate
	if got := c.run("cellcast", "place", "x"); got.code != 1 || !strings.HasPrefix(got.err, "Error: the hub answered with HTTP 307: ") {
		t.Errorf("got %d\n%s", got.code, got.err)
	}
	if reached {
		t.Error("the redirect was followed")
	}
}
