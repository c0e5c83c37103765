package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"cellcast.io/cellcast/pkg/ingest"
	"cellcast.io/cellcast/pkg/mirror"
)

// external is the listener that cells and pods reach, over the internet if need
// be. It serves the discovery mirror and what pods hand in, and nothing else, with
// the direct door's certificate.
type external struct {
	server   *http.Server
	listener net.Listener
}

func (s *Server) newExternal(ctx context.Context) (*external, error) {
	serving := s.config.Generic.SecureServing
	discovery, err := mirror.New(mirror.API{Client: s.config.HubClient.Discovery().RESTClient()}, mirror.Options{ExternalURL: s.config.ExternalURL})
	if err != nil {
		return nil, fmt.Errorf("discovery mirror: %w", err)
	}
	pods := s.newIngest()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			pods.ServeHTTP(w, r)
			return
		}
		discovery.ServeHTTP(w, r)
	})
	// The URL may have a path, for an ingress that serves other things too.
	at, err := url.Parse(s.config.ExternalURL)
	if err != nil {
		return nil, fmt.Errorf("external URL: %w", err)
	}
	host, _, err := net.SplitHostPort(serving.Listener.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("address of the direct door: %w", err)
	}
	if s.config.ExternalBindAddress != "" {
		host = s.config.ExternalBindAddress
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(s.config.ExternalPort)))
	if err != nil {
		return nil, fmt.Errorf("external listener: %w", err)
	}
	return &external{
		listener: listener,
		server: &http.Server{
			Handler:           http.StripPrefix(strings.TrimSuffix(at.Path, "/"), handler),
			TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate(serving.Cert)},
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       30 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       90 * time.Second,
			MaxHeaderBytes:    16 << 10,
		},
	}, nil
}

// newIngest takes in what pods hand in.
func (s *Server) newIngest() http.Handler {
	pods := canaries{s.targets, s.manager.GetClient().Status()}
	return ingest.New(ingest.Options{
		Pods: pods, Validators: s.targets.identity, Receiver: pods, Audit: s.audit, Clock: s.clock,
		Rates: ingest.Rates{
			PerSecond: s.config.Targets.PostsPerSecond, PerSource: s.config.Targets.PostsPerSource, PerTarget: ingest.DefaultPerTarget,
		},
	})
}

// externalEnd is how long requests under way may take when the listener ends.
const externalEnd = 3 * time.Second

// run serves until ctx is done, and lets the requests under way finish.
func (e *external) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), externalEnd)
		defer cancel()
		_ = e.server.Shutdown(grace)
	})
	defer stop()
	if err := e.server.ServeTLS(e.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("external listener: %w", err)
	}
	return nil
}

// certificate answers each handshake with the direct door's certificate as it
// is now: whoever rotates the file needs no restart.
func certificate(from dynamiccertificates.CertKeyContentProvider) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(from.CurrentCertKeyContent())
		if err != nil {
			return nil, fmt.Errorf("serving certificate: %w", err)
		}
		return &pair, nil
	}
}
