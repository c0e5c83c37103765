package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/seal"
)

const (
	// mintedToken is the token of the only credential that the fake mints.
	mintedToken = "minted.SECRET.token"
	requestID   = "8b1b0c98-4635-4993-b4d7-c502b41c51ec"
)

// callerToken is the only token that the fake accepts.
var callerToken = jwt(`{"iss":"https://ci.example.com","aud":"cellcast.io/hub","exp":4102444800}`)

// fakeHub answers as a hub does. What it answers to a placement is in the name
// of the workload: refused/CODE, or one of the words of answerPlacement.
type fakeHub struct {
	*httptest.Server

	mu sync.Mutex
	// asked and minted count placements.
	asked, minted int
	// connections are the callers' ends of those that placements came by.
	connections map[string]bool
	// word is what it answers by, where not by the workload's name.
	word string
	// trace is in its refusals, where there is one.
	trace []cellcastv1alpha1.Candidate
}

func newFakeHub(t testing.TB) *fakeHub {
	t.Helper()
	h := &fakeHub{connections: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apis/cellcast.io/v1alpha1/placements", h.placements)
	mux.HandleFunc("GET /apis/cellcast.io/v1alpha1/cells", h.cells)
	mux.HandleFunc("GET /apis/cellcast.io/v1alpha1/cells/{name}", h.cells)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"issuer":"https://cell.example.com"}`)
	})
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Audit-Id", requestID)
		if r.Header.Get("Authorization") != "Bearer "+callerToken {
			answer(w, apierrors.NewUnauthorized("who is this?"))
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

// ca is the PEM certificate to check the fake by.
func (h *fakeHub) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
}

func (h *fakeHub) counts() (asked, minted int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked, h.minted
}

// answers makes it answer every placement as if that were the workload's name.
func (h *fakeHub) answers(word string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.word = word
}

func (h *fakeHub) placements(w http.ResponseWriter, r *http.Request) {
	var p cellcastv1alpha1.Placement
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		answer(w, refusal.Invalid("", "%v", err).Status())
		return
	}
	dryRun := r.URL.Query().Get("dryRun") == "All"
	h.mu.Lock()
	h.asked++
	h.connections[r.RemoteAddr] = true
	if !dryRun {
		h.minted++
	}
	word, trace := h.word, h.trace
	h.mu.Unlock()
	if word == "" {
		word = p.Spec.Workload
	}

	if code, ok := strings.CutPrefix(word, "refused/"); ok {
		refused := refusal.New(refusal.Code(code), "the fake says so")
		if trace != nil {
			refused = refused.WithCandidates(trace, 2)
		}
		answer(w, refused.Status())
		return
	}
	switch word {
	case "forbidden":
		answer(w, apierrors.NewForbidden(cellcastv1alpha1.Resource("placements"), "", errors.New("User \"me\" cannot create it")))
	case "newer":
		status := refusal.New(refusal.NoPolicy, "a word from the future").Status()
		status.ErrStatus.Details.Causes[0].Type = "FromTheFuture"
		answer(w, status)
	case "newer-unavailable":
		status := refusal.New(refusal.CapacityUnknown, "a word from the future").Status()
		status.ErrStatus.Details.Causes[0].Type = "FromTheFuture"
		answer(w, status)
	case "unauthorized":
		answer(w, apierrors.NewUnauthorized("who is this?"))
	case "502", "504":
		code, _ := strconv.Atoi(word)
		http.Error(w, "a page of the gateway", code)
	case "fault":
		answer(w, refusal.ToAPI(errors.New("internal"), requestID).(apierrors.APIStatus))
	case "throttled":
		w.Header().Set("Retry-After", "7")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	case "gateway":
		w.Header().Set("Retry-After", "0") // client-go would ask again at once
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
	case "missing":
		http.NotFound(w, r)
	case "slow":
		<-r.Context().Done()
	case "cut":
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "{")
	case "no-cell":
		answer(w, &p)
	default:
		if refused := decide(&p, dryRun); refused != nil {
			answer(w, refused.Status())
			return
		}
		answer(w, &p)
	}
}

// decide fills in an answer. The workloads tokenless, overeager, unsealed and
// hostile get what no hub should answer.
func decide(p *cellcastv1alpha1.Placement, dryRun bool) *refusal.Refusal {
	p.Status = cellcastv1alpha1.PlacementStatus{
		RequestID:  requestID,
		Cell:       cellcastv1alpha1.CellReference{Name: "eu-1", Endpoint: "https://eu-1.example.com", CABundle: []byte("PEM")},
		Policy:     "payments",
		Strategy:   "LeastLoaded",
		Source:     cellcastv1alpha1.SourceHub,
		Confidence: cellcastv1alpha1.ConfidenceHigh,
	}
	if !dryRun && p.Spec.Workload != "tokenless" || p.Spec.Workload == "overeager" {
		p.Status.Credential = &cellcastv1alpha1.Credential{
			Token:               mintedToken,
			Namespace:           "payments",
			ServiceAccountName:  "deployer",
			ExpirationTimestamp: metav1.NewTime(now.Add(15 * time.Minute)),
		}
	}
	if c := p.Status.Credential; c != nil && p.Spec.Recipient != nil && p.Spec.Workload != "unsealed" {
		recipient, refused := seal.ParseRecipient("spec.recipient", *p.Spec.Recipient)
		if refused != nil {
			return refused
		}
		sealed, err := recipient.Seal(c.Token)
		if err != nil {
			panic(err)
		}
		c.Token, c.SealedToken = "", sealed
	}
	if p.Spec.Workload == "hostile" {
		p.Status.Policy = "\x1b[2Jpay\nments\u009b"
	}
	if p.Spec.Explain {
		p.Status.HiddenCells = 2
		p.Status.Candidates = []cellcastv1alpha1.Candidate{
			{Cell: "eu-1", Verdict: cellcastv1alpha1.VerdictChosen, UtilisationPercent: "41.5", WorstResource: "memory", ReportAgeSeconds: ptr.To[int64](12)},
			{Cell: "eu-2", Verdict: cellcastv1alpha1.VerdictExcluded, Stage: cellcastv1alpha1.StageState, Reason: "Draining", Message: "it takes no placement"},
		}
	}
	return nil
}

func (h *fakeHub) cells(w http.ResponseWriter, r *http.Request) {
	reported := metav1.NewTime(now.Add(-12 * time.Second))
	list := &cellcastv1alpha1.CellList{Items: []cellcastv1alpha1.Cell{
		{ObjectMeta: metav1.ObjectMeta{Name: "eu-1", Labels: map[string]string{"env": "prod"}},
			Status: cellcastv1alpha1.CellStatus{State: "LIVE", Capacity: cellcastv1alpha1.CapacityFresh, UtilisationPercent: "41.5",
				WorstResource: "memory", ReportedAt: &reported, Policies: []string{"payments", "web"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "eu-2"},
			Status: cellcastv1alpha1.CellStatus{State: "DRAINING", Capacity: cellcastv1alpha1.CapacityUnknown}},
	}}
	name := r.PathValue("name")
	if name == "" {
		answer(w, list)
		return
	}
	for _, cell := range list.Items {
		if cell.Name == name {
			answer(w, &cell)
			return
		}
	}
	answer(w, apierrors.NewNotFound(schema.GroupResource{Group: "cellcast.io", Resource: "cells"}, name))
}

// answer writes an object or an error as an API server does.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	code := http.StatusOK
	if status, ok := v.(apierrors.APIStatus); ok {
		s := status.Status()
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(s.Details.RetryAfterSeconds))
		}
		v, code = s, int(s.Code)
	}
	switch o := v.(type) {
	case *cellcastv1alpha1.Placement:
		o.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("Placement"))
		code = http.StatusCreated
	case *cellcastv1alpha1.Cell:
		o.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("Cell"))
	case *cellcastv1alpha1.CellList:
		o.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind("CellList"))
	}
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// jwt is a token by its form, with the given claims.
func jwt(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + "." + part([]byte("signature"))
}
