package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/pkg/refusal"
)

// Every refusal, through the wire: what is said, how often the hub is asked in the
// 30 seconds that there are, and the refusal as JSON.
func TestExitCodeAndAdviceOfEveryRefusal(t *testing.T) {
	type of struct{ exit, asked int }
	wants := map[refusal.Code]of{
		refusal.NoPolicy:               {3, 1},
		refusal.DarkNotPermitted:       {3, 1},
		refusal.CellChoiceNotPermitted: {3, 1},
		refusal.NoPermittedCells:       {3, 1},
		refusal.InvalidRequest:         {3, 1},
		refusal.NoEligibleCells:        {4, 1}, // told to wait for 30 s, it doesn't
		refusal.CapacityUnknown:        {4, 2},
		refusal.PlacementUnavailable:   {4, 6},
		refusal.RateLimited:            {4, 30},
		refusal.MintUnavailable:        {5, 3},
		refusal.MintFailed:             {5, 1},
		refusal.NotOwner:               {3, 1},
		refusal.TargetNotReady:         {4, 1}, // as with NoEligibleCells
	}
	c := newCaller(t)
	for _, m := range refusal.Meanings() {
		t.Run(string(m.Code), func(t *testing.T) {
			want, known := wants[m.Code]
			if !known {
				t.Fatal("the table of exit codes lacks this refusal")
			}
			if m.MayClear == (want.exit == 3) {
				t.Errorf("exit %d says the opposite of MayClear %v", want.exit, m.MayClear)
			}
			next, waiting := m.Next, ""
			if m.MayClear {
				next += " The hub says to wait " + m.RetryAfter.String() + "."
			}
			if m.RetryAfter > time.Second {
				waiting = strings.Repeat(string(m.Code)+": the fake says so; asking again in "+m.RetryAfter.String()+"\n", want.asked-1)
			}
			status := refusal.New(m.Code, "the fake says so").Status().ErrStatus
			status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			out, err := json.MarshalIndent(status, "", "    ")
			if err != nil {
				t.Fatal(err)
			}
			before, _ := c.hub.counts()
			got := c.run("cellcast", "place", "refused/"+string(m.Code), "-o", "json")
			if diff := cmp.Diff(answerOf{
				code: want.exit,
				out:  string(out) + "\n",
				err:  waiting + "Error: " + string(m.Code) + ": the fake says so\n" + next + "\nRequest id: " + requestID + "\n",
			}, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if asked, _ := c.hub.counts(); asked-before != want.asked {
				t.Errorf("asked %d times, want %d", asked-before, want.asked)
			}
		})
	}
}

// again is a line about the next try, whose wait has a part of chance.
var again = regexp.MustCompile(`(?m)^.*; asking again in [0-9.]+s\n`)

func TestExitCodeAndAdviceOfEverythingElse(t *testing.T) {
	id := "Request id: " + requestID + "\n"
	for name, test := range map[string]struct {
		workload string
		args     []string
		other    bool     // by the kubeconfig's door
		want     answerOf // its out is the reason in the Status, and the HTTP code
	}{
		"RBAC forbids a person": {workload: "forbidden", other: true, want: answerOf{3, "Forbidden 403",
			`Error: placements.cellcast.io is forbidden: User "me" cannot create it` + "\n" +
				"The hub's RBAC says so, not a PlacementPolicy: ask the platform team for a role that permits it.\n" + id}},
		"RBAC forbids a pipeline": {workload: "forbidden", want: answerOf{3, "Forbidden 403",
			`Error: placements.cellcast.io is forbidden: User "me" cannot create it` + "\n" +
				"The hub's RBAC says so, not a PlacementPolicy: ask the platform team for a role that permits it to the group cellcast.io:pipelines.\n" + id}},
		"a refusal that only a newer hub knows": {workload: "newer", want: answerOf{3, "Forbidden 403",
			"Error: NoPolicy: a word from the future\nUpdate cellcast: this version doesn't know the refusal.\n" + id}},
		"a 503 that only a newer hub knows": {workload: "newer-unavailable", want: answerOf{3, "ServiceUnavailable 503",
			"Error: CapacityUnknown: a word from the future\nUpdate cellcast: this version doesn't know the refusal.\n" + id}},
		"a gateway's 502": {workload: "502", want: answerOf{4, "InternalError 502",
			"Error: the hub's cellcast API isn't available (HTTP 502): an error on the server (\"a page of the gateway\") has prevented the request from succeeding (post placements.cellcast.io)\n" +
				"Retry; if it lasts, the platform team should look at the cellcast-hub pods and at what is in front of them.\n" + id}},
		"a gateway's 504": {workload: "504", want: answerOf{4, "Timeout 504",
			"Error: the hub's cellcast API isn't available (HTTP 504): the server was unable to return a response in the time allotted, but may still be processing the request (post placements.cellcast.io)\n" +
				"Retry; if it lasts, the platform team should look at the cellcast-hub pods and at what is in front of them.\n" + id}},
		"a token in the clear": {workload: "unsealed", want: answerOf{1, "ClientFailure 0",
			"Error: the hub answered with a token that isn't sealed, though it was given a key: something on the way took the key out, and may have read the token; nothing was kept of it, and the credential can't be revoked, and is good until 2026-01-02T03:19:05Z. Tell the platform team\n"}},
		"a fault of the hub": {workload: "fault", want: answerOf{1, "InternalError 500",
			"Error: the hub answered with HTTP 500: Internal error occurred: the hub failed to answer; its log says why under request id " + requestID + "\n" + id}},
		"a bare 429 of priority and fairness": {workload: "throttled", want: answerOf{4, "TooManyRequests 429",
			"Error: RateLimited: the server has received too many requests and has asked us to try again later (post placements.cellcast.io)\n" +
				"Retry after the time that the answer names. The hub says to wait 7s.\n" + id}},
		"the aggregator's 503": {workload: "gateway", other: true, want: answerOf{4, "ServiceUnavailable 503",
			"Error: the hub's cellcast API isn't available (HTTP 503): the server is currently unable to handle the request (post placements.cellcast.io)\n" +
				"Retry; if it lasts, see why: kubectl get apiservice v1alpha1.cellcast.io -o yaml\n" + id}},
		"a gateway's 503": {workload: "gateway", want: answerOf{4, "ServiceUnavailable 503",
			"Error: the hub's cellcast API isn't available (HTTP 503): the server is currently unable to handle the request (post placements.cellcast.io)\n" +
				"Retry; if it lasts, the platform team should look at the cellcast-hub pods and at what is in front of them.\n" + id}},
		"a cluster without cellcast": {workload: "missing", other: true, want: answerOf{1, "NotFound 404",
			"Error: this cluster serves no cellcast API\n" +
				"Check that the context is the hub's; if it is, cellcast isn't installed or isn't registered: kubectl get apiservice v1alpha1.cellcast.io\n" + id}},
		"a server that is no hub": {workload: "missing", want: answerOf{1, "NotFound 404",
			"Error: HUB serves no cellcast API\nCheck --hub: it's the URL of the hub's own port, without a path.\n" + id}},
		"a hub that doesn't answer in time": {workload: "slow", args: []string{"--timeout", "2s"}, want: answerOf{4, "ServiceUnavailable 0",
			"Error: the hub didn't answer: context deadline exceeded\nIt had 2s (--timeout). Retry, or check the way to HUB.\n"}},
		"an answer that breaks off": {workload: "cut", want: answerOf{4, "ServiceUnavailable 0",
			"Error: the hub didn't answer: unexpected error when reading response body. Please retry. Original error: unexpected EOF\n" +
				"Retry, or check the way to HUB.\n" + id}},
		"an answer without a cell": {workload: "no-cell", want: answerOf{1, "ClientFailure 0", "Error: the hub answered without a cell; is it a hub?\n"}},
		"an answer without the credential": {workload: "tokenless", want: answerOf{5, "NoCredential 0",
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
			var status metav1.Status
			if err := json.Unmarshal([]byte(got.out), &status); err != nil || status.Kind != "Status" || status.APIVersion != "v1" || status.Message == "" {
				t.Errorf("%v in\n%s", err, got.out)
			}
			got.out = fmt.Sprintf("%s %d", status.Reason, status.Code)
			tries := 1 + len(again.FindAllString(got.err, -1))
			got.err = again.ReplaceAllString(got.err, "")
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (tries > 1) != (test.want.code == 4 && test.workload != "slow") {
				t.Errorf("%d tries", tries)
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
	if got.code != 4 || len(again.FindAllString(got.err, -1)) < 3 || !strings.Contains(got.err, "connection refused\nRetry, or check the way to "+c.hub.URL+".\n") {
		t.Errorf("got %d\n%s", got.code, got.err)
	}
}

// A proxy that can't reach the hub is no fault of the caller's.
func TestAProxyThatDoesNotReachTheHub(t *testing.T) {
	c := newCaller(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer proxy.Close()
	config := c.file("proxied.kubeconfig", strings.Replace(fmt.Sprintf(hubKubeconfig, c.hub.URL), "certificate-authority:", `proxy-url: "`+proxy.URL+`", certificate-authority:`, 1))
	got := c.run("cellcast", "cells", "--kubeconfig", config)
	if got.code != 4 || !strings.Contains(got.err, "Error: the hub didn't answer: Bad Gateway\n") {
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
