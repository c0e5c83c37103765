// Package cell is the hub's way to its cells: one shared client per Cluster
// row, and no stored credential. The hub proves who it is by short-lived
// tokens of its own ServiceAccount, asked for at its own API server with a
// different audience per cell, so that what one cell is shown opens no other.
//
// Brought targets are reached the same way, with the token that their owner has
// registered in the place of the hub's own.
//
// A request to a cell passes, from the outside in: the call's own time limit
// (Client), the circuit breaker (breaker), the hub's identity (identity), and
// a connection that inherits nothing from the environment (newTransport).
// Every failure is a *failure.Error.
package cell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"cellcast.io/cellcast/pkg/cell/failure"
)

// Client is the hub at one cell. It's safe for use by many at once. No call is
// repeated by the client, except once, with a new token, where the cell no
// longer believes an old one. A call ends after Options.CallTimeout.
type Client struct {
	name    string
	api     rest.Interface
	timeout time.Duration
	breaker *breaker
	ailment ailment
	// troubled is told that the cell is better not chosen, or is well again.
	troubled func(bool)
	retired  bool          // held by Clients, under its own lock
	calls    chan struct{} // a place per call under way
	close    func()
}

// Name is the cell's name.
func (c *Client) Name() string { return c.name }

// CreateToken asks the cell for a token of one of its ServiceAccounts
// (TokenRequest). What comes back is the cell's word and isn't checked.
func (c *Client) CreateToken(ctx context.Context, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	asked := *request
	asked.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
	return create(ctx, c, c.api.Post().AbsPath("/api/v1").Namespace(namespace).
		Resource("serviceaccounts").Name(serviceAccount).SubResource("token"), &asked)
}

// CreateSecret makes a Secret on the cell and returns it as the cell has it.
func (c *Client) CreateSecret(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	asked := *secret
	asked.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	return create(ctx, c, c.api.Post().AbsPath("/api/v1").Namespace(secret.Namespace).Resource("secrets"), &asked)
}

// create sends an object, and returns it as the cell answers it.
func create[T any](ctx context.Context, c *Client, request *rest.Request, object *T) (*T, error) {
	made := new(T)
	if err := c.call(ctx, func(ctx context.Context) error { return exchange(ctx, request, object, made, maxObject) }); err != nil {
		return nil, err
	}
	return made, nil
}

// DeleteSecret deletes a Secret of the cell.
func (c *Client) DeleteSecret(ctx context.Context, namespace, name string) error {
	request := c.api.Delete().AbsPath("/api/v1").Namespace(namespace).Resource("secrets").Name(name)
	return c.call(ctx, func(ctx context.Context) error { return exchange(ctx, request, nil, nil, maxObject) })
}

// JWKS returns the key set that the cell signs its ServiceAccounts' tokens
// with, as the cell sent it: unparsed, and at most MaxAnswer bytes.
func (c *Client) JWKS(ctx context.Context) ([]byte, error) {
	return c.read(ctx, "/openid/v1/jwks", "application/jwk-set+json, application/json")
}

func (c *Client) read(ctx context.Context, path, accept string) (text []byte, err error) {
	request := c.api.Get().AbsPath(path).SetHeader("Accept", accept)
	if err := c.call(ctx, func(ctx context.Context) error {
		text, err = document(ctx, request, path)
		return err
	}); err != nil {
		return nil, err
	}
	return text, nil
}

// WhoAmI returns who the hub is at the cell (SelfSubjectReview). An answer
// proves that the cell trusts the hub.
func (c *Client) WhoAmI(ctx context.Context) (authenticationv1.UserInfo, error) {
	review := authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}
	request := c.api.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews")
	var answer authenticationv1.SelfSubjectReview
	err := c.call(ctx, func(ctx context.Context) error {
		err := exchange(ctx, request, review, &answer, maxObject)
		if err == nil && answer.Status.UserInfo.Username == "" {
			return errors.New("the answer names no user")
		}
		return err
	})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return answer.Status.UserInfo, nil
}

// errNoAnswer marks the end of a call that ran out of the client's own time,
// in distinction from a caller's.
var errNoAnswer = errors.New("the cell didn't answer in time")

// maxCalls is how many calls to one cell are under way at once. A cell that
// answers slowly must not take up the whole hub.
const maxCalls = 16

// errCrowded says that a call found no place within the client's time.
var errCrowded = errors.New("too many calls to the cell are under way")

func (c *Client) call(ctx context.Context, do func(context.Context) error) error {
	bounded, cancel := context.WithTimeoutCause(quiet(ctx), c.timeout, errNoAnswer)
	defer cancel()
	wait, stop := context.WithTimeout(bounded, c.timeout/5)
	defer stop()
	select {
	case c.calls <- struct{}{}:
		defer func() { <-c.calls }()
	case <-wait.Done():
		if ctx.Err() != nil {
			return &failure.Error{Kind: failure.Interrupted, Cell: c.name, Err: ctx.Err()}
		}
		return &failure.Error{Kind: failure.Unavailable, Cell: c.name, Err: errCrowded}
	}
	err := do(bounded)
	if err != nil {
		if errors.Is(context.Cause(bounded), errNoAnswer) && !errors.Is(err, errNoAnswer) {
			err = fmt.Errorf("%w: %w", errNoAnswer, err)
		}
		err = c.failed(ctx, err)
	}
	if ill, changed := c.ailment.note(err); changed {
		c.troubled(ill)
	}
	return err
}

// failed sorts the error of a call.
func (c *Client) failed(ctx context.Context, err error) error {
	f := &failure.Error{Cell: c.name, Err: err}
	kind, answered := failure.FromStatus(err)
	_, noToken := errors.AsType[*tokenError](err)
	unavailable, parked := errors.AsType[*Unavailable](err)
	switch {
	case noToken && ctx.Err() == nil: // before answered: the status in its chain is the hub's
		f.Kind = failure.NoHubToken
	case ctx.Err() != nil && (noToken || !answered):
		f.Kind = failure.Interrupted
	case parked:
		f.Kind, f.RetryAfter = failure.Unreachable, unavailable.RetryAfter
	case answered:
		f.Kind, f.RetryAfter = kind, advised(err)
	case brokeOff(err):
		f.Kind = failure.Unreachable
	default:
		f.Kind = failure.Unexpected
	}
	return f
}

// brokeOff reports whether the connection, and not what came over it, is at
// fault.
func brokeOff(err error) bool {
	_, request := errors.AsType[*url.Error](err)
	var connection net.Error
	return !errors.Is(err, errSwitched) &&
		(request || errors.As(err, &connection) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errNoAnswer))
}

// advised is the Retry-After of a cell's answer, believed up to a minute.
func advised(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok {
		return 0
	}
	return min(time.Duration(max(seconds, 0))*time.Second, time.Minute)
}

// quiet takes the logger out of the context. client-go logs the bodies of
// requests and answers at a high log level, and these have tokens in them.
func quiet(ctx context.Context) context.Context {
	return klog.NewContext(ctx, logr.Discard())
}
