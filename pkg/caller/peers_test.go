package caller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/test/issuer"
)

const hubSubject = "system:serviceaccount:cellcast-system:cellcast-hub"

func relay(verb string) *genericapirequest.RequestInfo {
	return &genericapirequest.RequestInfo{Verb: verb, Path: "/relay/v1/batch"}
}

// newPeers believes tokens of the hub's API server, which the issuer stands for.
func newPeers(t *testing.T, hub *issuer.Issuer) *Peers {
	t.Helper()
	client, err := keyset.Client(hub.CA())
	if err != nil {
		t.Fatal(err)
	}
	return NewPeers(PeerOptions{
		Keys:    keyset.New(keyset.Discovery(client, hub.URL(), ""), keyset.Options{}),
		Issuer:  func(context.Context) (string, error) { return hub.URL(), nil },
		Subject: hubSubject,
	})
}

// peerToken is a token of a replica, with the claims changed.
func peerToken(t *testing.T, hub *issuer.Issuer, how issuer.Signing, changes ...any) string {
	t.Helper()
	now := time.Now()
	claims := map[string]any{"iss": hub.URL(), "sub": hubSubject, "aud": []string{"cellcast.io/peers"},
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(30 * time.Minute).Unix()}
	for i := 0; i < len(changes); i += 2 {
		claims[changes[i].(string)] = changes[i+1]
	}
	token, err := hub.Sign(claims, how)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestReplicaIsLetIn(t *testing.T) {
	hub := startIssuer(t, issuer.Options{})
	response, ok, err := newPeers(t, hub).AuthenticateToken(
		genericapirequest.WithRequestInfo(t.Context(), relay("post")), peerToken(t, hub, issuer.Signing{}))
	if !ok {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Peer{Subject: hubSubject}, response.User); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReplicaIsRefused(t *testing.T) {
	hub := startIssuer(t, issuer.Options{})
	peers := newPeers(t, hub)
	of := `issuer "` + hub.URL() + `": `
	now := time.Now()
	tests := map[string]struct {
		request *genericapirequest.RequestInfo
		how     issuer.Signing
		changes []any
		reason  Reason
		text    string
	}{
		"with the token that a cell was shown": {relay("post"), issuer.Signing{}, []any{"aud", "cellcast:cell:prod-eu"}, ReasonAudience,
			of + `the audience is ["cellcast:cell:prod-eu"], not one of ["cellcast.io/peers"]`},
		"with a token that is good elsewhere too": {relay("post"), issuer.Signing{}, []any{"aud", []string{"cellcast.io/peers", "cellcast:cell:prod-eu"}}, ReasonAudience,
			of + `the audience is ["cellcast.io/peers" "cellcast:cell:prod-eu"], not one of ["cellcast.io/peers"] alone`},
		"with the token of another ServiceAccount": {relay("post"), issuer.Signing{}, []any{"sub", "system:serviceaccount:default:default"}, ReasonSubject,
			of + `the subject is "system:serviceaccount:default:default", not "` + hubSubject + `"`},
		"with another cluster's token": {relay("post"), issuer.Signing{}, []any{"iss", "https://cell.example.com"}, ReasonIssuer,
			of + `the issuer is "https://cell.example.com", not "` + hub.URL() + `"`},
		"with a token for longer than an hour": {relay("post"), issuer.Signing{}, []any{"iat", now.Unix(), "exp", now.Unix() + 3601}, ReasonLifetime,
			of + `the token lives for 1h0m1s, more than 1h0m0s`},
		"with a token that doesn't say its age": {relay("post"), issuer.Signing{}, []any{"iat", nil}, ReasonLifetime,
			of + `the token doesn't say when it was issued`},
		"with an expired token": {relay("post"), issuer.Signing{}, []any{"exp", now.Unix() - 1}, ReasonExpired,
			of + `the token expired at ` + time.Unix(now.Unix()-1, 0).UTC().Format(time.RFC3339)},
		"with a key that the hub doesn't publish": {relay("post"), issuer.Signing{Key: issuer.Unpublished}, nil, ReasonUnknownKey,
			of + `the token is signed by a key that its issuer doesn't publish`},
		"where it reads":            {relay("get"), issuer.Signing{}, nil, ReasonVerb, "a replica can only post to /relay/v1/batch"},
		"where it places":           {placements(), issuer.Signing{}, nil, ReasonVerb, "a replica can only post to /relay/v1/batch"},
		"beside the relay":          {&genericapirequest.RequestInfo{Verb: "post", Path: "/relay/v1/batch/x"}, issuer.Signing{}, nil, ReasonVerb, "a replica can only post to /relay/v1/batch"},
		"on a resource of the path": {&genericapirequest.RequestInfo{Verb: "post", Path: "/relay/v1/batch", IsResourceRequest: true}, issuer.Signing{}, nil, ReasonVerb, "a replica can only post to /relay/v1/batch"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := peerToken(t, hub, tc.how, tc.changes...)
			response, ok, err := peers.AuthenticateToken(genericapirequest.WithRequestInfo(t.Context(), tc.request), token)
			if ok || response != nil {
				t.Fatalf("it was let in as %v", response)
			}
			wantFailure(t, err, tc.reason, string(tc.reason)+": "+tc.text, token)
		})
	}
}

func TestReplicaIsRefusedWhileTheIssuerIsUnknown(t *testing.T) {
	hub := startIssuer(t, issuer.Options{})
	peers := NewPeers(PeerOptions{
		Issuer:  func(context.Context) (string, error) { return "", errors.New("the hub's API server is away") },
		Subject: hubSubject,
	})
	token := peerToken(t, hub, issuer.Signing{})
	_, ok, err := peers.AuthenticateToken(genericapirequest.WithRequestInfo(t.Context(), relay("post")), token)
	if ok {
		t.Fatal("it was let in")
	}
	wantFailure(t, err, ReasonKeysUnavailable, "KeysUnavailable: the hub's API server is away", token)
}
