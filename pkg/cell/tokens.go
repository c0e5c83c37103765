package cell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"cellcast.io/cellcast/pkg/secret"
)

// MinTokenLife is the least life that Kubernetes issues a token for.
const MinTokenLife = 10 * time.Minute

const (
	// leeway is the end of a token's life that isn't used: a request takes time,
	// and a cell's clock may be ahead.
	leeway = 15 * time.Second
	// suspicious is the age from which a 401 may be the token's fault. A cell
	// that doesn't trust the hub must not make it ask for a token per call.
	suspicious = time.Minute
)

// TokenCreator creates tokens of ServiceAccounts in one namespace of the hub;
// CoreV1().ServiceAccounts(namespace) of a clientset is one.
type TokenCreator interface {
	CreateToken(ctx context.Context, serviceAccount string, request *authenticationv1.TokenRequest, options metav1.CreateOptions) (*authenticationv1.TokenRequest, error)
}

// TokenOptions say whose tokens the hub asks for.
type TokenOptions struct {
	// ServiceAccount is the name of the hub's own ServiceAccount.
	ServiceAccount string
	// PodName and PodUID bind the tokens to the pod that the hub runs in, so
	// that they end with it. Both empty means unbound.
	PodName string
	PodUID  types.UID
	// Life is how long a token shall live. Zero means half an hour; MinTokenLife
	// is the least. It's also, less a fifth, for how long the hub goes on at its
	// cells while its own API server is away.
	Life time.Duration
	// Clock is when tokens are renewed by. Nil means the real one.
	Clock clock.PassiveClock
}

// Tokens are the hub's own tokens, one per audience, held in memory alone. A
// token is renewed, at its next use, from between 70 and 80 percent of its life;
// while that fails the one still good is used. Many who want one token at once
// cause one request.
type Tokens struct {
	creator TokenCreator
	options TokenOptions
	flights singleflight.Group

	mu       sync.Mutex
	holdings map[string]holding
}

// holding is what is known for one audience.
type holding struct {
	token                    secret.Value
	issued, renewAt, expires time.Time
	// failure is why the last request failed; none is made before retryAt.
	failure error
	retryAt time.Time
}

func (h holding) usable(now time.Time) bool { return now.Before(h.expires.Add(-leeway)) }

// NewTokens returns an empty set of tokens. It asks for none yet.
func NewTokens(creator TokenCreator, options TokenOptions) (*Tokens, error) {
	if options.Life == 0 {
		options.Life = 30 * time.Minute
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	switch {
	case options.ServiceAccount == "":
		return nil, errors.New("the hub's own tokens need the name of its ServiceAccount")
	case (options.PodName == "") != (options.PodUID == ""):
		return nil, errors.New("the hub's own tokens are bound to a pod by its name and its UID: give both or neither")
	case options.Life < MinTokenLife:
		return nil, fmt.Errorf("the hub's own tokens can't live %s: Kubernetes issues none for less than %s", options.Life, MinTokenLife)
	}
	return &Tokens{creator: creator, options: options, holdings: map[string]holding{}}, nil
}

// Token returns a token that is good for the audience now.
func (t *Tokens) Token(ctx context.Context, audience string) (secret.Value, error) {
	h, now := t.holding(audience), t.options.Clock.Now()
	usable := h.usable(now)
	switch {
	case usable && now.Before(h.renewAt):
		return h.token, nil
	case now.Before(h.retryAt):
		if usable {
			return h.token, nil
		}
		return secret.Value{}, h.failure
	}
	renewed := t.flights.DoChan(audience, func() (any, error) { return t.renew(audience) })
	if usable {
		return h.token, nil
	}
	select {
	case <-ctx.Done():
		return secret.Value{}, context.Cause(ctx)
	case result := <-renewed:
		if result.Err != nil {
			return secret.Value{}, result.Err
		}
		return result.Val.(secret.Value), nil
	}
}

// Reject says that a cell didn't believe the token. Unless it's so young that
// another one wouldn't fare better, it's dropped. Reject reports whether Token
// gives another one now.
func (t *Tokens) Reject(audience string, token secret.Value) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.holdings[audience]
	if !h.token.Equal(token) {
		return true
	}
	if t.options.Clock.Since(h.issued) < suspicious {
		return false
	}
	delete(t.holdings, audience)
	return true
}

func (t *Tokens) holding(audience string) holding {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holdings[audience]
}
