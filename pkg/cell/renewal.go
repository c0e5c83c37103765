package cell

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"cellcast.io/cellcast/pkg/secret"
)

const (
	// renewalTimeout bounds one request for a token.
	renewalTimeout = 10 * time.Second
	// renewalPause is the least time between a failed request and the next.
	renewalPause = 2 * time.Second
)

// renew asks for a token. It belongs to everyone who waits, so no one's context
// ends it.
func (t *Tokens) renew(audience string) (secret.Value, error) {
	now := t.options.Clock.Now()
	ctx, cancel := context.WithTimeout(quiet(context.Background()), renewalTimeout)
	defer cancel()
	answer, err := t.creator.CreateToken(ctx, t.options.ServiceAccount, t.request(audience), metav1.CreateOptions{})
	if err == nil {
		err = acceptable(answer, now)
	}
	if err != nil {
		err = fmt.Errorf("asking the hub's API server for a token of ServiceAccount %s for audience %s: %w", t.options.ServiceAccount, audience, err)
		t.fail(audience, err)
		return secret.Value{}, err
	}
	return t.hold(audience, answer, now), nil
}

func (t *Tokens) request(audience string) *authenticationv1.TokenRequest {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:         []string{audience},
		ExpirationSeconds: ptr.To(int64(t.options.Life / time.Second)),
	}}
	if t.options.PodName != "" {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: t.options.PodName, UID: t.options.PodUID,
		}
	}
	return request
}

func acceptable(answer *authenticationv1.TokenRequest, now time.Time) error {
	if answer.Status.Token == "" {
		return errors.New("the answer has no token")
	}
	if !answer.Status.ExpirationTimestamp.After(now.Add(leeway)) {
		return fmt.Errorf("the answer's token ends at %s already", answer.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
	}
	return nil
}

func (t *Tokens) hold(audience string, answer *authenticationv1.TokenRequest, now time.Time) secret.Value {
	expires := answer.Status.ExpirationTimestamp.Time
	h := holding{
		token: secret.New(answer.Status.Token), issued: now, expires: expires,
		renewAt: now.Add(wait.Jitter(expires.Sub(now)*7/10, 1.0/7)),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holdings[audience] = h
	return h.token
}

func (t *Tokens) fail(audience string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.holdings[audience]
	h.failure, h.retryAt = err, t.options.Clock.Now().Add(wait.Jitter(renewalPause, 0.5))
	t.holdings[audience] = h
}
