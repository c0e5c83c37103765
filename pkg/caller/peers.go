package caller

import (
	"context"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
)

const (
	// PeerAudience is what replicas of the hub have their tokens for each other
	// issued for. No cell may have it: what the hub shows to that cell would be
	// good here.
	PeerAudience = "cellcast.io/peers"
	// RelayPath is where a replica hands over what it heard and placed.
	RelayPath = relayPrefix + "v1/batch"

	relayPrefix = "/relay/"
	// peerLifetime is the longest that a peer's token may live. The hub asks for
	// half an hour. A token is checked without asking anybody, so that one of a
	// replica that is gone serves to its end.
	peerLifetime = time.Hour
)

// PeerOptions say who the hub's replicas are.
type PeerOptions struct {
	// Keys are the keys that sign the hub's own ServiceAccount tokens.
	Keys KeySet
	// Issuer returns the issuer of these tokens. It's asked at each request, so
	// it must remember.
	Issuer func(context.Context) (string, error)
	// Subject is the hub's own: system:serviceaccount:<namespace>:<name>.
	Subject string
	// Clock tells the time; the real one by default.
	Clock clock.PassiveClock
}

// Peers authenticates the other replicas of the hub by a token of the
// ServiceAccount that all of them have. The cells are shown tokens of the same
// subject: the audience alone tells them apart, so it must be the only one.
type Peers struct {
	options PeerOptions
}

var _ authenticator.Token = (*Peers)(nil)

// NewPeers returns an authenticator that has read no keys yet.
func NewPeers(o PeerOptions) *Peers {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Peers{options: o}
}

// AuthenticateToken returns a *Peer for a request that posts to RelayPath; any
// other request is refused. The error is a *Failure.
func (p *Peers) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	info, ok := genericapirequest.RequestInfoFrom(ctx)
	if !ok || info.IsResourceRequest || info.Path != RelayPath || info.Verb != "post" {
		return nil, false, fail(ReasonVerb, "a replica can only post to %s", RelayPath)
	}
	issuer, err := p.options.Issuer(ctx)
	if err != nil {
		return nil, false, &Failure{Reason: ReasonKeysUnavailable, cause: err}
	}
	expect := expectation{
		issuer: issuer, subject: p.options.Subject, audiences: []string{PeerAudience},
		soleAudience: true, lifetime: peerLifetime,
	}
	if _, failure := expect.verify(ctx, p.options.Keys, token, p.options.Clock.Now); failure != nil {
		failure.Issuer = issuer
		return nil, false, failure
	}
	return &authenticator.Response{User: &Peer{Subject: p.options.Subject}}, true, nil
}

// isRelay says whether a request is about the relay, whatever its verb.
func isRelay(info *genericapirequest.RequestInfo) bool {
	return !info.IsResourceRequest && strings.HasPrefix(info.Path, relayPrefix)
}
