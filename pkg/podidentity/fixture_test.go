package podidentity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/pkg/keyset"
)

// brought and fleet are what a target's row and a cell's say of their pods.
// Both have the stock issuer.
var (
	brought = Registration{
		Target:   Target{UID: "t1", Mode: ModeJWKS},
		Endpoint: "https://target.acme.example:6443", CABundle: "ca",
		Issuer: "https://kubernetes.default.svc", Audience: "cellcast-ingest",
		Namespace: "team", ServiceAccount: "runner",
	}
	fleet = Registration{
		Target:   Target{UID: "c1", Mode: ModeTokenReview},
		Endpoint: "https://cell.acme.example:6443", CABundle: "ca",
		Issuer: "https://kubernetes.default.svc", Audience: "cellcast-ingest",
		Namespace: "team", ServiceAccount: "runner",
	}
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

// podClaims are those of an honest token: of pod work-1 of team/runner, for an
// hour from now.
func podClaims() object {
	now := time.Now().Unix()
	return object{
		"iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:team:runner",
		"aud": []string{"cellcast-ingest"}, "jti": "a6dd",
		"iat": now, "nbf": now, "exp": now + 3600,
		"kubernetes.io": bound("team", "runner", object{"name": "work-1", "uid": "u1"}),
	}
}

func bound(namespace, serviceAccount string, pod any) object {
	return object{
		"namespace": namespace, "serviceaccount": object{"name": serviceAccount, "uid": "s1"},
		"node": object{"name": "n1", "uid": "nu1"}, "warnafter": 1,
	}.with(object{"pod": pod})
}

// at is the pod of podClaims.
func at(target Target) Pod {
	return Pod{Namespace: "team", ServiceAccount: "runner", Name: "work-1", UID: "u1", Target: target}
}

type signingKey struct {
	id      string
	private *ecdsa.PrivateKey
}

func newKey(t *testing.T, id string) signingKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signingKey{id, private}
}

func (k signingKey) token(t *testing.T, claims object) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return k.sign(t, string(payload))
}

func (k signingKey) sign(t *testing.T, payload string) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithHeader("kid", k.id)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: k.private}, options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(payload))
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
// as a kube-apiserver does. It can be slow, and away.
type api struct {
	mu    sync.Mutex
	keys  []signingKey
	gone  map[types.UID]bool // pods
	delay time.Duration
	err   error
	alter func(*authenticationv1.TokenReviewStatus)

	reads, reviews int
	now, most      int // reviews under way
}

func (a *api) set(change func(a *api)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func (a *api) counts() (reads, reviews int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reads, a.reviews
}

// fetch answers /openid/v1/jwks.
func (a *api) fetch(ctx context.Context) ([]byte, error) {
	a.mu.Lock()
	a.reads++
	var set jose.JSONWebKeySet
	for _, k := range a.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: "ES256", Use: "sig"})
	}
	delay, err := a.delay, a.err
	a.mu.Unlock()
	if err := wait(ctx, delay); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(set)
}

// CreateTokenReview answers a review.
func (a *api) CreateTokenReview(ctx context.Context, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	a.mu.Lock()
	a.reviews++
	a.now++
	a.most = max(a.most, a.now)
	delay := a.delay
	a.mu.Unlock()
	err := wait(ctx, delay)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now--
	if err == nil {
		err = a.err
	}
	if err != nil {
		return nil, err
	}
	review = review.DeepCopy()
	review.Status = a.status(review.Spec)
	if a.alter != nil {
		a.alter(&review.Status)
	}
	return review, nil
}

func (a *api) status(spec authenticationv1.TokenReviewSpec) authenticationv1.TokenReviewStatus {
	refused := authenticationv1.TokenReviewStatus{Error: "invalid bearer token " + spec.Token}
	jws, err := jose.ParseSignedCompact(spec.Token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return refused
	}
	for _, k := range a.keys {
		payload, err := jws.Verify(k.private.Public())
		if err != nil {
			continue
		}
		var c claims
		if json.Unmarshal(payload, &c) != nil || a.gone[c.Kubernetes.Pod.UID] || spec.Audiences[0] != c.Audience[0] {
			return refused
		}
		return authenticationv1.TokenReviewStatus{
			Authenticated: true,
			Audiences:     spec.Audiences,
			User: authenticationv1.UserInfo{Username: c.Subject, Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {c.Kubernetes.Pod.Name},
				"authentication.kubernetes.io/pod-uid":  {string(c.Kubernetes.Pod.UID)},
			}},
		}
	}
	return refused
}

func wait(ctx context.Context, delay time.Duration) error {
	select {
	case <-time.After(delay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fleetOf has an API for each endpoint.
type fleetOf map[string]*api

func (f fleetOf) Keys(r Registration) keyset.Fetch { return f[r.Endpoint].fetch }
func (f fleetOf) Reviewer(r Registration) Reviewer { return f[r.Endpoint] }

func validator(t *testing.T, r Registration, a *api) Validator {
	t.Helper()
	v, err := New(fleetOf{r.Endpoint: a}).For(r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// reasonOf is empty for no error.
func reasonOf(err error) Reason {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Reason
	}
	if err != nil {
		return Reason("no failure: " + err.Error())
	}
	return ""
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
