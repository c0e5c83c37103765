package ingest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/pkg/podidentity"
)

const (
	issuer   = "https://kubernetes.default.svc" // the stock one, which targets share
	audience = "https://hub.example.com"
	podUID   = types.UID("0b4c1f5e-7a2d-4e0b-9c1d-3f1a2b3c4d5e")
)

func registration(uid types.UID, mode podidentity.Mode) podidentity.Registration {
	return podidentity.Registration{
		Target: podidentity.Target{UID: uid, Mode: mode}, Endpoint: "https://" + string(uid) + ".example:6443", CABundle: "ca",
		Issuer: issuer, Audience: audience, Namespace: "team", ServiceAccount: "runner",
	}
}

var (
	brought = registration("t1", podidentity.ModeJWKS)
	other   = registration("t2", podidentity.ModeJWKS)
	fleet   = registration("c1", podidentity.ModeTokenReview)
)

// object is a JSON object.
type object map[string]any

// with returns a copy with some members replaced; a nil leaves one out.
func (o object) with(members object) object {
	o = maps.Clone(o)
	maps.Copy(o, members)
	maps.DeleteFunc(o, func(_ string, value any) bool { return value == nil })
	return o
}

// claimsFor are those of an honest token, for ten minutes from now.
func claimsFor(name string, uid types.UID) object {
	now := time.Now().Unix()
	return object{
		"iss": issuer, "sub": "system:serviceaccount:team:runner", "aud": []string{audience},
		"iat": now, "nbf": now, "exp": now + 600,
		"kubernetes.io": bound("team", "runner", object{"name": name, "uid": uid}),
	}
}

func bound(namespace, serviceAccount string, pod any) object {
	return object{"namespace": namespace, "serviceaccount": object{"name": serviceAccount, "uid": "s1"}}.with(object{"pod": pod})
}

type signingKey struct {
	id      string
	private *ecdsa.PrivateKey
}

func newKey(t testing.TB, id string) signingKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signingKey{id, private}
}

// token signs. ES256 signs differently each time, so no two tokens are the same.
func (k signingKey) token(t testing.TB, claims object) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: k.private}, (&jose.SignerOptions{}).WithHeader("kid", k.id))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// api is the API of a target or cell: it publishes its keys, and reviews tokens
// as a kube-apiserver does.
type api struct {
	mu             sync.Mutex
	keys           []signingKey
	delay          time.Duration
	err            error
	reads, reviews int
}

func (a *api) set(change func(a *api)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

// asked is how often it was, either way.
func (a *api) asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reads + a.reviews
}

// answer waits as long as the API takes.
func (a *api) answer(ctx context.Context, count *int) ([]signingKey, error) {
	a.mu.Lock()
	*count++
	keys, delay, err := a.keys, a.delay, a.err
	a.mu.Unlock()
	select {
	case <-time.After(delay):
		return keys, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *api) fetch(ctx context.Context) ([]byte, error) {
	keys, err := a.answer(ctx, &a.reads)
	if err != nil {
		return nil, err
	}
	var set jose.JSONWebKeySet
	for _, k := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: "ES256", Use: "sig"})
	}
	return json.Marshal(set)
}

// CreateTokenReview answers a review.
func (a *api) CreateTokenReview(ctx context.Context, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	keys, err := a.answer(ctx, &a.reviews)
	if err != nil {
		return nil, err
	}
	review = review.DeepCopy()
	jws, err := jose.ParseSignedCompact(review.Spec.Token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return review, nil
	}
	for _, k := range keys {
		payload, err := jws.Verify(k.private.Public())
		var c struct {
			claims
			Subject string `json:"sub"`
		}
		if err != nil || json.Unmarshal(payload, &c) != nil {
			continue
		}
		review.Status = authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: review.Spec.Audiences,
			User: authenticationv1.UserInfo{Username: c.Subject, Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {c.Kubernetes.Pod.Name},
				"authentication.kubernetes.io/pod-uid":  {string(c.Kubernetes.Pod.UID)},
			}},
		}
	}
	return review, nil
}

// apis have one for each endpoint.
type apis map[string]*api

func (a apis) Keys(r podidentity.Registration) keyset.Fetch             { return a[r.Endpoint].fetch }
func (a apis) Reviewer(r podidentity.Registration) podidentity.Reviewer { return a[r.Endpoint] }

// records are what the hub has recorded, taken in and put into its trail.
type records struct {
	mu    sync.Mutex
	pods  map[string]Expected
	posts []Post
	trail []audit.Record

	delay         time.Duration
	receive, lost error // of Receive and Write
	// old says that what is posted was taken before.
	old bool
}

func (r *records) Pod(_ context.Context, name string) (Expected, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	expected, ok := r.pods[name]
	return expected, ok
}

func (r *records) expect(name string, expected Expected) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[name] = expected
}

func (r *records) Receive(ctx context.Context, post Post) (news bool, err error) {
	select {
	case <-time.After(r.delay):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.receive == nil {
		r.posts = append(r.posts, post)
	}
	return !r.old, r.receive
}

func (r *records) Write(record audit.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trail = append(r.trail, record)
	return r.lost
}

// reason is that of the last record.
func (r *records) reason() Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.trail) == 0 {
		return "no record"
	}
	return Reason(r.trail[len(r.trail)-1].Reason)
}

// scene is a hub with a pod on a brought target, on another of the same issuer
// string, and on a fleet cell: work-1 to work-3, all with one UID.
type scene struct {
	*Handler
	records                    *records
	brought, other, fleet      *api
	broughtKey, otherKey, cell signingKey
}

func newScene(t testing.TB, rates Rates) *scene {
	t.Helper()
	s := &scene{broughtKey: newKey(t, "k"), otherKey: newKey(t, "k2"), cell: newKey(t, "k")}
	s.brought, s.other, s.fleet = &api{keys: []signingKey{s.broughtKey}}, &api{keys: []signingKey{s.otherKey}}, &api{keys: []signingKey{s.cell}}
	s.records = &records{pods: map[string]Expected{
		"work-1": {Registration: brought, UID: podUID, Run: "run-1", Target: "target:t1"},
		"work-2": {Registration: other, UID: podUID, Run: "run-2", Target: "target:t2"},
		"work-3": {Registration: fleet, UID: podUID, Run: "run-3", Target: "cell:c1"},
	}}
	validators := podidentity.New(apis{brought.Endpoint: s.brought, other.Endpoint: s.other, fleet.Endpoint: s.fleet})
	s.Handler = New(Options{Pods: s.records, Validators: validators, Receiver: s.records, Audit: s.records, Rates: rates})
	return s
}

// asked is how often any of the three APIs was asked.
func (s *scene) asked() int { return s.brought.asked() + s.other.asked() + s.fleet.asked() }

// post is one from an address, of a token to a pod.
func (s *scene) post(name, token, from string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/api/pods/"+name+"/artifacts/canary", strings.NewReader("alive"))
	r.Header.Set("Authorization", "Bearer "+token)
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const someone = "192.0.2.1:4711"

// shown fails unless the post ends with the reason, "" for being taken.
func (s *scene) shown(t *testing.T, name, token, from string, want Reason) {
	t.Helper()
	wantCode := http.StatusNoContent
	if want != "" {
		wantCode = want.answer().code
	}
	w := s.post(name, token, from)
	if got := s.records.reason(); w.Code != wantCode || got != want {
		body, _ := io.ReadAll(w.Body)
		t.Errorf("%s from %s: got %d %q for %q, want %d for %q", name, from, w.Code, body, got, wantCode, want)
	}
}
