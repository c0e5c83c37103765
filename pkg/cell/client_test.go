package cell_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/celltest"
	"cellcast.io/cellcast/pkg/cell/failure"
)

// world is a hub and a cell that trusts it, with the ServiceAccount
// payments/deployer that the hub may mint for.
type world struct {
	hub     *celltest.Hub
	cell    *celltest.Cell
	clock   *clocktesting.FakePassiveClock
	clients *cell.Clients
}

func newWorld(t *testing.T, options cell.Options) world {
	t.Helper()
	now := clocktesting.NewFakePassiveClock(time.Now())
	hub := celltest.NewHub(now)
	fra := celltest.New(t, "fra-1", hub, now)
	fra.AddServiceAccount("payments", "deployer")
	fra.AllowMint("payments", "deployer")
	tokens, err := cell.NewTokens(hub, cell.TokenOptions{ServiceAccount: "cellcast-hub", Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	options.Clock = now
	return world{hub, fra, now, cell.NewClients(tokens, options)}
}

func (w world) client(t *testing.T) *cell.Client {
	t.Helper()
	client, err := w.clients.For(w.cell.Cluster())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestClientIsTheHubAtTheCell(t *testing.T) {
	w := newWorld(t, cell.Options{Version: "v1.2.3"})
	ctx := audit.WithAuditContext(t.Context())
	audit.WithAuditID(ctx, "a-1")
	client := w.client(t)

	user, err := client.WhoAmI(ctx)
	if err != nil || user.Username != "cellcast-hub:system:serviceaccount:cellcast-system:cellcast-hub" {
		t.Errorf("who am I: %q, %v", user.Username, err)
	}
	keys, err := client.JWKS(ctx)
	if err != nil || !bytes.Equal(keys, w.cell.JWKS()) {
		t.Errorf("key set: %s, %v", keys, err)
	}
	answer, err := client.CreateToken(ctx, "payments", "deployer", &authenticationv1.TokenRequest{})
	if err != nil || !strings.HasPrefix(answer.Status.Token, "eyJ") || answer.Status.ExpirationTimestamp.IsZero() {
		t.Errorf("token: %+v, %v", answer, err)
	}
	if client.Name() != "fra-1" {
		t.Errorf("the cell is called %q", client.Name())
	}

	const hub = "cellcast-hub:system:serviceaccount:cellcast-system:cellcast-hub"
	want := []celltest.Request{
		{Method: "POST", Path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", UserAgent: "cellcast-hub/v1.2.3", AuditID: "a-1", User: hub},
		{Method: "GET", Path: "/openid/v1/jwks", UserAgent: "cellcast-hub/v1.2.3", AuditID: "a-1", User: hub},
		{Method: "POST", Path: "/api/v1/namespaces/payments/serviceaccounts/deployer/token", UserAgent: "cellcast-hub/v1.2.3", AuditID: "a-1", User: hub},
	}
	if diff := cmp.Diff(want, w.cell.Requests()); diff != "" {
		t.Errorf("the cell saw other requests (-want +got):\n%s", diff)
	}
}

func TestFailuresAreSortedByKind(t *testing.T) {
	status := func(code int) func(world) {
		return func(w world) { w.cell.Answer(&celltest.Canned{Code: code, Body: "no"}) }
	}
	tests := map[string]struct {
		arrange    func(world)
		account    string
		timeout    time.Duration // of a call; zero is the default
		kind       failure.Kind
		retryAfter time.Duration
	}{
		"a cell that doesn't trust the hub":     {arrange: func(w world) { w.cell.Distrust(true) }, kind: failure.Unauthenticated},
		"RBAC that doesn't name the account":    {account: "admin", kind: failure.Forbidden},
		"an account that isn't there":           {arrange: func(w world) { w.cell.AllowMint("payments", "gone") }, account: "gone", kind: failure.NotFound},
		"a 404 page of something else":          {arrange: status(404), kind: failure.Unexpected},
		"an admission policy":                   {arrange: status(422), kind: failure.Rejected},
		"a gateway whose cell is away":          {arrange: status(502), kind: failure.Unavailable},
		"a redirect":                            {arrange: status(307), kind: failure.Unexpected},
		"a page where an object should be":      {arrange: status(200), kind: failure.Unexpected},
		"a cell that breaks off the connection": {arrange: func(w world) { w.cell.Down(true) }, kind: failure.Unreachable},
		"a cell that doesn't answer in time":    {arrange: func(w world) { w.cell.Hang(true) }, timeout: 200 * time.Millisecond, kind: failure.Unreachable},
		"a hub that can't get its own token": {
			arrange: func(w world) {
				w.hub.Fail(apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "cellcast-hub", nil))
			},
			kind: failure.NoHubToken,
		},
		"a busy cell that says when to come back": {
			arrange: func(w world) {
				w.cell.Answer(&celltest.Canned{Code: 429, Header: http.Header{"Retry-After": {"7"}}})
			},
			kind: failure.Unavailable, retryAfter: 7 * time.Second,
		},
		"a busy cell that says to come back next year": {
			arrange: func(w world) {
				w.cell.Answer(&celltest.Canned{Code: 503, Header: http.Header{"Retry-After": {"31536000"}}})
			},
			kind: failure.Unavailable, retryAfter: time.Minute,
		},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, cell.Options{CallTimeout: tt.timeout})
			if tt.arrange != nil {
				tt.arrange(w)
			}
			if tt.account == "" {
				tt.account = "deployer"
			}
			_, err := w.client(t).CreateToken(t.Context(), "payments", tt.account, &authenticationv1.TokenRequest{})
			if got := failure.Of(err); got != tt.kind || err == nil {
				t.Errorf("got %s (%v), want %s", got, err, tt.kind)
			}
			if got := failure.RetryAfter(err); got != tt.retryAfter {
				t.Errorf("retry after %s, want %s", got, tt.retryAfter)
			}
			if n := len(w.cell.Requests()); n > 1 {
				t.Errorf("the cell was asked %d times: the client must repeat nothing", n)
			}
			if err != nil && strings.Contains(err.Error(), "hub-token") {
				t.Errorf("the error quotes the token: %v", err)
			}
		})
	}
}

func TestWhoAmIAndJWKSFailWithAKindToo(t *testing.T) {
	w := newWorld(t, cell.Options{})
	client := w.client(t)
	w.cell.Distrust(true)
	if _, err := client.WhoAmI(t.Context()); failure.Of(err) != failure.Unauthenticated {
		t.Errorf("who am I: %v", err)
	}
	if keys, err := client.JWKS(t.Context()); failure.Of(err) != failure.Unauthenticated || keys != nil || !strings.HasSuffix(err.Error(), "Unauthenticated: Unauthorized") {
		t.Errorf("key set: %q, %v", keys, err)
	}
	w.cell.Answer(&celltest.Canned{Code: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`})
	if _, err := client.WhoAmI(t.Context()); failure.Of(err) != failure.Unexpected || !strings.HasSuffix(err.Error(), "the answer names no user") {
		t.Errorf("who am I, of an empty answer: %v", err)
	}
}

func TestAnAnswerIsReadUpToOneMebibyte(t *testing.T) {
	w := newWorld(t, cell.Options{})
	client := w.client(t)
	w.cell.Answer(&celltest.Canned{Code: 200, Body: strings.Repeat("x", 1<<20)})
	if keys, err := client.JWKS(t.Context()); err != nil || len(keys) != 1<<20 {
		t.Errorf("one mebibyte: %d bytes, %v", len(keys), err)
	}
	w.cell.Answer(&celltest.Canned{Code: 200, Body: strings.Repeat("x", 1<<20+1)})
	if keys, err := client.JWKS(t.Context()); failure.Of(err) != failure.Unexpected || keys != nil {
		t.Errorf("one byte more: %d bytes, %v", len(keys), err)
	}
}

func TestACallerThatGoesAwaySaysNothingAboutTheCell(t *testing.T) {
	w := newWorld(t, cell.Options{})
	client := w.client(t)
	w.cell.Hang(true)
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := client.WhoAmI(ctx)
		cancel()
		if failure.Of(err) != failure.Interrupted {
			t.Fatalf("got %v", err)
		}
	}
	w.cell.Hang(false)
	if _, err := client.WhoAmI(t.Context()); err != nil {
		t.Errorf("callers in a hurry parked the cell: %v", err)
	}
}

func TestACellThatCantBeConnectedToIsNotAskedForAWhile(t *testing.T) {
	w := newWorld(t, cell.Options{})
	client := w.client(t)
	w.cell.Down(true)
	for range 5 {
		_, _ = client.WhoAmI(t.Context())
	}
	w.cell.Down(false)
	seen := len(w.cell.Requests())

	_, err := client.WhoAmI(t.Context())
	if unavailable, ok := errors.AsType[*cell.Unavailable](err); !ok || !unavailable.Since.Equal(w.clock.Now()) {
		t.Errorf("got %v, want Unavailable since %s", err, w.clock.Now())
	}
	if failure.Of(err) != failure.Unreachable || failure.RetryAfter(err) < 10*time.Second || failure.RetryAfter(err) > 15*time.Second {
		t.Errorf("got %s, retry after %s; want Unreachable and the pause", failure.Of(err), failure.RetryAfter(err))
	}
	if n := len(w.cell.Requests()); n != seen {
		t.Errorf("the cell was asked %d times while parked", n-seen)
	}
	if diff := cmp.Diff([]string{"fra-1"}, w.clients.Parked()); diff != "" {
		t.Errorf("parked (-want +got):\n%s", diff)
	}

	w.clock.SetTime(w.clock.Now().Add(16 * time.Second))
	if parked := w.clients.Parked(); len(parked) != 0 {
		t.Errorf("when it may be tried again, %v is parked", parked)
	}
	if _, err := client.WhoAmI(t.Context()); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

func TestACellThatCantServeIsBetterNotChosenForAWhile(t *testing.T) {
	w := newWorld(t, cell.Options{})
	client := w.client(t)
	ask := func(want failure.Kind) {
		t.Helper()
		if _, err := client.WhoAmI(t.Context()); err == nil && want != "" || err != nil && failure.Of(err) != want {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	parked := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, w.clients.Parked()); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
	}
	w.cell.Answer(&celltest.Canned{Code: 503})
	ask(failure.Unavailable)
	ask(failure.Unavailable)
	parked()
	ask(failure.Unavailable)
	parked("fra-1")
	ask(failure.Unavailable) // it's still asked
	w.clock.SetTime(w.clock.Now().Add(11 * time.Second))
	parked()
	ask(failure.Unavailable)
	parked("fra-1")
	w.cell.Answer(nil)
	ask("")
	parked()

	// A client that was replaced says nothing of the one after it.
	w.cell.Answer(&celltest.Canned{Code: 503})
	w.clients.Forget("fra-1")
	for range 4 {
		ask(failure.Unavailable)
	}
	parked()
}

func TestA401ToAnOldTokenIsAnsweredWithANewOneOnce(t *testing.T) {
	w := newWorld(t, cell.Options{})
	client := w.client(t)
	mint := func() error {
		_, err := client.CreateToken(t.Context(), "payments", "deployer", &authenticationv1.TokenRequest{})
		return err
	}
	if err := mint(); err != nil {
		t.Fatal(err)
	}
	w.hub.RotateKeys()
	w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
	if err := mint(); err != nil {
		t.Errorf("after the hub's keys were rotated: %v", err)
	}
	if asked, came := len(w.hub.Requests()), len(w.cell.Requests()); asked != 2 || came != 3 {
		t.Errorf("%d tokens, %d requests; want 2 and 3", asked, came)
	}

	w.cell.Distrust(true)
	w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
	for range 5 {
		if err := mint(); failure.Of(err) != failure.Unauthenticated {
			t.Errorf("got %v", err)
		}
	}
	if asked, came := len(w.hub.Requests()), len(w.cell.Requests()); asked != 3 || came != 9 {
		t.Errorf("%d tokens, %d requests; want 3 and 9: one new token for five calls", asked, came)
	}
}

func TestTheTokenFollowsNoRedirect(t *testing.T) {
	var shown []string
	thief := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	w := newWorld(t, cell.Options{})
	w.cell.Answer(&celltest.Canned{Code: http.StatusTemporaryRedirect, Header: http.Header{"Location": {thief.URL + "/openid/v1/jwks"}}})

	if _, err := w.client(t).JWKS(t.Context()); failure.Of(err) != failure.Unexpected {
		t.Errorf("got %v", err)
	}
	if len(shown) != 0 {
		t.Errorf("the redirect was followed with %q", shown)
	}
}

func TestNoLogLevelShowsAToken(t *testing.T) {
	var log bytes.Buffer
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", "10")
	_ = flags.Set("logtostderr", "false")
	klog.SetOutput(&log)
	defer func() {
		_ = flags.Set("v", "0")
		_ = flags.Set("logtostderr", "true")
	}()

	w := newWorld(t, cell.Options{})
	answer, err := w.client(t).CreateToken(t.Context(), "payments", "deployer", &authenticationv1.TokenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	klog.Flush()
	if strings.Contains(log.String(), answer.Status.Token) || strings.Contains(log.String(), "hub-token") {
		t.Errorf("the log has a token in it:\n%s", log.String())
	}
}

func TestForReturnsOneClientUntilItsGroundsChange(t *testing.T) {
	w := newWorld(t, cell.Options{})
	row := w.cell.Cluster()
	other := celltest.New(t, "other", w.hub, nil).Cluster()
	for sentence, tt := range map[string]struct {
		change func(*registryv1alpha1.Cluster)
		same   bool
	}{
		"the same row":     {func(*registryv1alpha1.Cluster) {}, true},
		"another state":    {func(c *registryv1alpha1.Cluster) { c.Spec.State = registryv1alpha1.StateDraining }, true},
		"other labels":     {func(c *registryv1alpha1.Cluster) { c.Labels = nil }, true},
		"another endpoint": {func(c *registryv1alpha1.Cluster) { c.Spec.Endpoint = other.Spec.Endpoint }, false},
		"another CA":       {func(c *registryv1alpha1.Cluster) { c.Spec.CABundle = append(c.Spec.CABundle, other.Spec.CABundle...) }, false},
		"another audience": {func(c *registryv1alpha1.Cluster) { c.Spec.Trust.Audience = "cellcast:cell:b" }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			before, err := w.clients.For(row)
			if err != nil {
				t.Fatal(err)
			}
			changed := row.DeepCopy()
			tt.change(changed)
			after, err := w.clients.For(changed)
			if err != nil {
				t.Fatal(err)
			}
			if (before == after) != tt.same {
				t.Errorf("the same client: %t, want %t", before == after, tt.same)
			}
		})
	}

	before := w.client(t)
	w.clients.Forget("never-there")
	if w.client(t) != before {
		t.Error("forgetting another cell cost this one's client")
	}
	w.clients.Forget("fra-1")
	if w.client(t) == before {
		t.Error("a forgotten client came back")
	}
}

func TestForRefusesARowThatItCantUse(t *testing.T) {
	w := newWorld(t, cell.Options{})
	for sentence, tt := range map[string]struct {
		change func(*registryv1alpha1.ClusterSpec)
		want   string
	}{
		"an endpoint that isn't https":   {func(s *registryv1alpha1.ClusterSpec) { s.Endpoint = "http://cell.example" }, "cell fra-1: spec.endpoint: is not an https URL"},
		"a caBundle with something else": {func(s *registryv1alpha1.ClusterSpec) { s.CABundle = []byte("hunter2") }, "cell fra-1: spec.caBundle: what stands before entry 1 isn't PEM"},
		"no audience":                    {func(s *registryv1alpha1.ClusterSpec) { s.Trust.Audience = "" }, "cell fra-1: spec.trust.audience: is empty"},
	} {
		t.Run(sentence, func(t *testing.T) {
			row := w.cell.Cluster()
			tt.change(&row.Spec)
			if _, err := w.clients.For(row); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestACertificateThatTheRowDoesntTrustIsUnreachable(t *testing.T) {
	w := newWorld(t, cell.Options{})
	row := w.cell.Cluster()
	row.Spec.CABundle = nil
	client, err := w.clients.For(row)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.WhoAmI(t.Context()); failure.Of(err) != failure.Unreachable || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
	if n := len(w.cell.Requests()); n != 0 {
		t.Errorf("%d requests went to a server that wasn't trusted", n)
	}
}

func TestAnEndpointMayHaveAPath(t *testing.T) {
	w := newWorld(t, cell.Options{})
	row := w.cell.Cluster()
	row.Spec.Endpoint += "/k8s/clusters/c-1"
	client, err := w.clients.For(row)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = client.CreateToken(t.Context(), "payments", "deployer", &authenticationv1.TokenRequest{})
	_, _ = client.JWKS(t.Context())
	var paths []string
	for _, request := range w.cell.Requests() {
		paths = append(paths, request.Path)
	}
	want := []string{"/k8s/clusters/c-1/api/v1/namespaces/payments/serviceaccounts/deployer/token", "/k8s/clusters/c-1/openid/v1/jwks"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths differ (-want +got):\n%s", diff)
	}
}

func TestANameCantLeaveItsPlaceInThePath(t *testing.T) {
	w := newWorld(t, cell.Options{})
	for _, name := range []string{"../../secrets/x", "a/b", "..", ""} {
		if _, err := w.client(t).CreateToken(t.Context(), "payments", name, &authenticationv1.TokenRequest{}); err == nil {
			t.Errorf("%q was sent", name)
		}
	}
	if n := len(w.cell.Requests()); n != 0 {
		t.Errorf("%d requests went out", n)
	}
}
