package cli_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/seal"
)

// credentialhubNonce is that of the only revocable credential that the fake
// has issued.
const credentialhubNonce = "nonce-of-twenty-two-chars"

// credentialhub is a fake hub of one cell whose credentials can be revoked. It
// mints minted.SECRET.N, counting.
type credentialhub struct {
	*httptest.Server
	cell cellcastv1alpha1.CellReference
	// life is how long a credential lives by the cell, and revocable how long by
	// the agent; zero means that it isn't revocable.
	life, revocable time.Duration
	now             func() time.Time
	// refuses answers a question on this path, and asked is told of it.
	refuses map[string]refusal.Code
	asked   func(path string)
	// way changes a credential on its way to the caller.
	way func(*cellcastv1alpha1.Credential)
	// minting is told of each token.
	minting func(token string, ends time.Time)

	mu     sync.Mutex
	minted int
	alive  bool
	// mute answers a revocation without a result.
	mute    bool
	revoked []string
	// tokens are the questions for a named cell.
	tokens []cellcastv1alpha1.CellTokenSpec
}

// with changes the hub between two questions.
func (h *credentialhub) with(change func(*credentialhub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

func newCredentialhub(t *testing.T) *credentialhub {
	t.Helper()
	h := &credentialhub{
		cell: cellcastv1alpha1.CellReference{Name: "eu-1", Endpoint: "https://eu-1.example.com", CABundle: []byte("PEM")},
		life: 10 * time.Minute, revocable: 5 * time.Minute, now: func() time.Time { return now },
		refuses: map[string]refusal.Code{}, asked: func(string) {}, way: func(*cellcastv1alpha1.Credential) {}, minting: func(string, time.Time) {}, alive: true,
	}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.Close)
	return h
}

func (h *credentialhub) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/apis/cellcast.io/v1alpha1/")
	w.Header().Set("Audit-Id", requestID)
	h.mu.Lock()
	asked := h.asked
	code, refused := h.refuses[path]
	cell := h.cell
	h.mu.Unlock()
	asked(path)
	switch {
	case r.Header.Get("Authorization") != "Bearer "+callerToken:
		answer(w, apierrors.NewUnauthorized("who is this?"))
	case refused:
		answer(w, refusal.New(code, "the fake says so").Status())
	case path == "placements":
		p := &cellcastv1alpha1.Placement{}
		h.read(r, p)
		p.Status = cellcastv1alpha1.PlacementStatus{RequestID: requestID, Cell: cell, Credential: h.credential(r, p.Spec.Recipient)}
		h.respond(w, "Placement", p)
	case path == "cells/eu-1/token":
		token := &cellcastv1alpha1.CellToken{}
		h.read(r, token)
		h.noteToken(token.Spec)
		token.Status = cellcastv1alpha1.CellTokenStatus{RequestID: requestID, Cell: cell, Credential: h.credential(r, token.Spec.Recipient)}
		h.respond(w, "CellToken", token)
	case path == "cells/eu-1/revocation":
		revocation := &cellcastv1alpha1.CellRevocation{}
		h.read(r, revocation)
		revocation.Status.Result = h.revoke(revocation.Spec)
		h.respond(w, "CellRevocation", revocation)
	default:
		http.NotFound(w, r)
	}
}

func (h *credentialhub) read(r *http.Request, into any) {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		panic(err)
	}
}

func (h *credentialhub) respond(w http.ResponseWriter, kind string, object interface {
	metav1.Object
	SetGroupVersionKind(schema.GroupVersionKind)
}) {
	object.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind(kind))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// credential mints one, sealed as a hub does; none in a dry run.
func (h *credentialhub) credential(r *http.Request, to *cellcastv1alpha1.Recipient) *cellcastv1alpha1.Credential {
	if r.URL.Query().Get("dryRun") == "All" {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.minted++
	c := &cellcastv1alpha1.Credential{Namespace: "payments", ServiceAccountName: "deployer",
		Token: fmt.Sprintf("minted.SECRET.%d", h.minted), ExpirationTimestamp: metav1.NewTime(h.now().Add(h.life))}
	h.minting(c.Token, c.ExpirationTimestamp.Truncate(time.Second))
	if h.revocable > 0 {
		at := metav1.NewTime(h.now().Add(h.revocable))
		c.RevokesAt, c.RevocationNonce = &at, credentialhubNonce
	}
	if to != nil {
		recipient, refused := seal.ParseRecipient("spec.recipient", *to)
		if refused != nil {
			panic(refused)
		}
		var err error
		if c.SealedToken, err = recipient.Seal(c.Token); err != nil {
			panic(err)
		}
		c.Token = ""
	}
	h.way(c)
	return c
}

func (h *credentialhub) noteToken(spec cellcastv1alpha1.CellTokenSpec) {
	h.mu.Lock()
	defer h.mu.Unlock()
	spec.Recipient = nil
	h.tokens = append(h.tokens, spec)
}

// revoke ends the one credential that is alive.
func (h *credentialhub) revoke(spec cellcastv1alpha1.CellRevocationSpec) cellcastv1alpha1.RevocationResult {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revoked = append(h.revoked, spec.Namespace+" "+spec.RevocationNonce)
	if h.mute {
		return ""
	}
	if !h.alive || spec.Namespace != "payments" || spec.RevocationNonce != credentialhubNonce {
		return cellcastv1alpha1.RevocationNotFound
	}
	h.alive = false
	return cellcastv1alpha1.RevocationRevoked
}

func (h *credentialhub) counts() (minted int, revoked []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.minted, h.revoked
}

// job is a CI job that is known to a credentialhub.
type job struct {
	t    *testing.T
	hub  *credentialhub
	dir  string
	temp string
	env  []string
}

func newJob(t *testing.T) *job {
	t.Helper()
	j := &job{t: t, hub: newCredentialhub(t), dir: t.TempDir()}
	j.temp = filepath.Join(j.dir, "runner")
	if err := os.Mkdir(j.temp, 0o755); err != nil {
		t.Fatal(err)
	}
	ca := string((&fakeHub{Server: j.hub.Server}).ca())
	j.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + j.dir, "RUNNER_TEMP=" + j.temp,
		"CELLCAST_HUB=" + j.hub.URL, "CELLCAST_HUB_CA=" + j.file("ca.pem", ca), "CELLCAST_TOKEN_FILE=" + j.file("oidc.jwt", callerToken)}
	return j
}

func (j *job) file(name, content string) string {
	j.t.Helper()
	path := filepath.Join(j.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		j.t.Fatal(err)
	}
	return path
}

// command is the client as a process of its own, with what it shows.
func (j *job) command(args ...string) (cmd *exec.Cmd, out, err *strings.Builder) {
	out, err = &strings.Builder{}, &strings.Builder{}
	cmd = exec.Command("cellcast", args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = j.dir, j.env, out, err
	return cmd, out, err
}

// run runs the client within the test, and fails where it shows the caller's
// own token.
func (j *job) run(args ...string) answerOf {
	j.t.Helper()
	vars := map[string]string{}
	for _, v := range j.env {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = value
	}
	// What isn't read by way of the client's Env.
	j.t.Chdir(j.dir)
	j.t.Setenv("KUBECONFIG", vars["KUBECONFIG"])
	j.t.Setenv("TMPDIR", cmp.Or(vars["TMPDIR"], j.dir))
	var out, err strings.Builder
	code := cli.Run(j.t.Context(), cli.Env{
		Args: append([]string{"cellcast"}, args...), Out: &out, Err: &err,
		Getenv: func(name string) string { return vars[name] },
		Now:    func() time.Time { return now },
	})
	if strings.Contains(out.String()+err.String(), callerToken) {
		j.t.Errorf("%v shows the caller's token", args)
	}
	return answerOf{code, out.String(), err.String()}
}

// credentialhubRevoked is what the fake is asked to revoke after one command.
var credentialhubRevoked = []string{"payments " + credentialhubNonce}

// clean fails where the fake was asked to revoke something else, or where the
// job left anything behind.
func (j *job) clean(revoked []string) {
	j.t.Helper()
	if _, got := j.hub.counts(); strings.Join(got, ",") != strings.Join(revoked, ",") {
		j.t.Errorf("revoked %q, want %q", got, revoked)
	}
	if left, err := os.ReadDir(j.temp); err != nil || len(left) > 0 {
		j.t.Errorf("left behind: %v, %v", left, err)
	}
}

// eventually waits for a process to come to a point.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it didn't come to that in a minute")
		}
	}
}
