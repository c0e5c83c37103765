package hub

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/pkg/peers"
	"cellcast.io/cellcast/pkg/secret"
)

// replicas is this replica's part in the relay: what it hands to the others and
// what it takes from them.
type replicas struct {
	relay    *peers.Relay // nil where there can be no peers
	source   peers.Source
	receiver *peers.Receiver
}

// newReplicas puts the relay together. Nothing is asked for or looked up yet.
func (s *Server) newReplicas(tokens *cell.Tokens) (*replicas, error) {
	c := s.config
	instance, metrics := string(uuid.NewUUID()), peers.NewMetrics()
	s.metrics.MustRegister(metrics)
	r := &replicas{receiver: peers.NewReceiver(peers.ReceiverOptions{
		Instance: instance, Index: s.index, Metrics: metrics, Now: s.clock.Now,
	})}
	var err error
	if r.source, err = c.peerSource(); err != nil || r.source == nil {
		return r, err
	}
	r.relay = peers.New(peers.Options{Instance: instance, Metrics: metrics, Post: peers.NewClient(peers.ClientOptions{
		Path:       caller.RelayPath,
		Token:      func(ctx context.Context) (secret.Value, error) { return tokens.Token(ctx, caller.PeerAudience) },
		Reject:     func(token secret.Value) { tokens.Reject(caller.PeerAudience, token) },
		Roots:      c.peerRoots,
		ServerName: c.peerServerName(),
	})})
	return r, nil
}

// run hands over until ctx is done.
func (r *replicas) run(ctx context.Context) error {
	if r.relay == nil {
		return nil
	}
	if err := r.relay.Run(ctx, r.source); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

// installRelay takes batches of peers on the direct door.
func (s *Server) installRelay() {
	s.generic.Handler.NonGoRestfulMux.Handle(caller.RelayPath, s.replicas.receiver)
}

// peerAuthenticator believes tokens of the hub's own ServiceAccount, by the keys
// and the issuer of the hub's API server.
func (s *Server) peerAuthenticator() *caller.Peers {
	api := s.config.HubClient.Discovery().RESTClient()
	issuer := &seldom{ask: s.issuer.get, pause: 5 * time.Second, clock: s.clock}
	return caller.NewPeers(caller.PeerOptions{
		Keys: keyset.New(func(ctx context.Context) ([]byte, error) {
			return api.Get().AbsPath("/openid/v1/jwks").Do(ctx).Raw()
		}, keyset.Options{}),
		Issuer:  issuer.get,
		Subject: fmt.Sprintf("system:serviceaccount:%s:%s", s.config.Namespace, s.config.ServiceAccount),
	})
}

// peerSource tells who the peers are; nil where that is nobody.
func (c *Config) peerSource() (peers.Source, error) {
	switch {
	case len(c.Peers) > 0:
		return peers.Static(c.Peers), nil
	case c.PeerService == "":
		return nil, nil
	}
	address, ok := c.Generic.SecureServing.Listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, errors.New("relay: the direct door has no TCP port")
	}
	return peers.Endpoints(peers.EndpointOptions{
		Client: c.HubClient, Namespace: c.Namespace, Service: c.PeerService, Port: address.Port,
		Self: peers.Self{PodName: c.Pod.Name, PodUID: c.Pod.UID, IP: c.Pod.IP},
	}), nil
}

func (c *Config) peerServerName() string {
	if c.PeerServerName != "" || len(c.Peers) > 0 {
		return c.PeerServerName
	}
	return c.PeerService + "." + c.Namespace + ".svc"
}

// peerRoots are what a peer's certificate is checked against: the file, or this
// replica's own certificate, which the replicas of one Deployment share. Only
// the certificate itself, for what signed it may have signed others too.
func (c *Config) peerRoots() ([]byte, error) {
	if c.PeerCAFile != "" {
		return os.ReadFile(c.PeerCAFile)
	}
	own, _ := c.Generic.SecureServing.Cert.CurrentCertKeyContent()
	for block, rest := pem.Decode(own); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return pem.EncodeToMemory(block), nil
		}
	}
	return nil, errors.New("the serving certificate's file has no certificate")
}

// seldom asks again only some time after a failure, so that strangers can't make
// the hub ask.
type seldom struct {
	ask   func(context.Context) (string, error)
	pause time.Duration
	clock clock.PassiveClock

	mu      sync.Mutex
	failure error
	retryAt time.Time
}

func (s *seldom) get(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil && s.clock.Now().Before(s.retryAt) {
		return "", s.failure
	}
	// Whoever asks first may hang up, and so must not decide for the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.pause)
	defer cancel()
	var answer string
	answer, s.failure = s.ask(ctx)
	s.retryAt = s.clock.Now().Add(s.pause)
	return answer, s.failure
}
