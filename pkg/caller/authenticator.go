package caller

import (
	"context"
	"errors"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Doors are the ways in.
type Doors struct {
	// HubUsers authenticates by the request headers of the hub's API server.
	HubUsers authenticator.Request
	// Reporters, Pipelines and Peers authenticate by a bearer token.
	Reporters, Pipelines, Peers authenticator.Token
	// OnFailure is called with each bearer token that was refused. It may be
	// nil.
	OnFailure func(context.Context, *Failure)
	// Open are the paths that may be asked without credentials, such as /livez.
	Open []string
}

// Authenticator asks, in this order:
//
//  1. The request headers of the hub's API server, which count only on a
//     connection with its proxy certificate. They come first because whoever
//     comes that way has been authenticated, and the hub shall say so too.
//  2. The bearer token. The path chooses who looks at it: on cells/capacity
//     the reporters alone, below /relay/ the peers alone, everywhere else the
//     pipelines alone. A token that its authenticator refuses is tried on nobody
//     else, so that a pipeline can't report and no junk reaches a second key set.
//  3. Nobody, on the open paths: kubelets probe without credentials. Credentials
//     that were refused are not taken for none.
//
// HubUsers must not take a request without credentials for anonymous.
//
// It must not be wrapped by what rebuilds the user, as Kubernetes' adder of
// system:authenticated does: a caller's class is the type of its user, which
// puts itself into that group.
func Authenticator(d Doors) authenticator.Request {
	named := union.New(d.HubUsers, bearertoken.New(byPath{d}))
	if len(d.Open) == 0 {
		return named
	}
	var open []apiserver.AnonymousAuthCondition
	for _, path := range d.Open {
		open = append(open, apiserver.AnonymousAuthCondition{Path: path})
	}
	return union.NewFailOnError(named, anonymous.NewAuthenticator(open))
}

// byPath gives a bearer token to the authenticator of the request's path.
type byPath struct {
	doors Doors
}

// AuthenticateToken is called with the RequestInfo in the context.
func (b byPath) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	info, ok := genericapirequest.RequestInfoFrom(ctx)
	if !ok {
		return nil, false, errors.New("the request's path was not parsed before authentication")
	}
	chosen := b.doors.Pipelines
	switch {
	case isCapacity(info):
		chosen = b.doors.Reporters
	case isRelay(info):
		chosen = b.doors.Peers
	}
	if chosen == nil {
		return nil, false, errors.New("nobody authenticates here by a token")
	}
	response, ok, err := chosen.AuthenticateToken(ctx, token)
	var failure *Failure
	if errors.As(err, &failure) && b.doors.OnFailure != nil {
		b.doors.OnFailure(ctx, failure)
	}
	return response, ok, err
}
