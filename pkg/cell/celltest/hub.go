package celltest

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// HubSubject is the sub of the tokens of the hub's own ServiceAccount.
const HubSubject = "system:serviceaccount:cellcast-system:cellcast-hub"

// Hub is the API server of the hub as far as its own tokens go: it issues them,
// one after the other, and forgets them when its keys are rotated. It's a
// cell.TokenCreator.
type Hub struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	issued []grant
	valid  map[string]grant
	fault  error
	life   time.Duration
}

// grant is a token that was issued.
type grant struct {
	audience string
	expires  time.Time
	request  authenticationv1.TokenRequestSpec
}

// NewHub returns a hub with the ServiceAccount cellcast-hub. A nil clock is the
// real one.
func NewHub(now clock.PassiveClock) *Hub {
	if now == nil {
		now = clock.RealClock{}
	}
	return &Hub{clock: now, valid: map[string]grant{}}
}

// CreateToken issues a token hub-token-1, hub-token-2 and so on.
func (h *Hub) CreateToken(ctx context.Context, name string, request *authenticationv1.TokenRequest, _ metav1.CreateOptions) (*authenticationv1.TokenRequest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case h.fault != nil:
		return nil, h.fault
	case name != "cellcast-hub":
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, name)
	case len(request.Spec.Audiences) != 1:
		return nil, apierrors.NewBadRequest("the hub asks for one audience per token")
	}
	life := time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, 3600)) * time.Second
	if life < 10*time.Minute {
		return nil, apierrors.NewBadRequest("may not specify a duration less than 10 minutes")
	}
	if h.life > 0 {
		life = min(life, h.life)
	}
	g := grant{audience: request.Spec.Audiences[0], expires: h.clock.Now().Add(life), request: request.Spec}
	h.issued = append(h.issued, g)
	token := fmt.Sprintf("hub-token-%d", len(h.issued))
	h.valid[token] = g

	answer := request.DeepCopy()
	answer.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(g.expires)}
	return answer, nil
}

// Requests are the specs of the tokens issued, in order.
func (h *Hub) Requests() []authenticationv1.TokenRequestSpec {
	h.mu.Lock()
	defer h.mu.Unlock()
	specs := make([]authenticationv1.TokenRequestSpec, 0, len(h.issued))
	for _, g := range h.issued {
		specs = append(specs, g.request)
	}
	return specs
}

// Fail makes the hub answer with the error, until Fail(nil).
func (h *Hub) Fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = err
}

// ShortenTo bounds the life of tokens, as --service-account-max-token-expiration
// does; zero ends that.
func (h *Hub) ShortenTo(life time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.life = life
}

// RotateKeys ends the life of all tokens issued so far.
func (h *Hub) RotateKeys() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.valid)
}

// Believes reports whether the token is the hub's, for the audience and alive.
func (h *Hub) Believes(token, audience string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, ok := h.valid[token]
	return ok && g.audience == audience && h.clock.Now().Before(g.expires)
}
