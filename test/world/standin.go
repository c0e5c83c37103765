package world

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// standIn serves the hub's OIDC discovery in the place of cellcast-hub until
// that runs. A cell that finds no mirror when it starts asks again only after
// ten seconds, and a changed file takes a cell as long; with the stand-in, all
// control planes start side by side, and tests of a cell need no cellcast-hub.
type standIn struct {
	server *http.Server
}

// startStandIn listens on the hub's external port. The keys are read from the
// hub's API server at each request.
func startStandIn(h *Hub) (*standIn, error) {
	pair, err := h.serverCA.serving(h.world.outside)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.cert, pair.key)
	if err != nil {
		return nil, fmt.Errorf("reading the stand-in's certificate: %w", err)
	}
	upstream, err := url.Parse(h.URL)
	if err != nil {
		return nil, fmt.Errorf("reading the hub's URL: %w", err)
	}
	transport, err := rest.TransportFor(h.Admin.config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET "+discoveryPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer":                                h.Issuer,
			"jwks_uri":                              h.ExternalURL + keysPath,
			"response_types_supported":              []string{"id_token"},
			"subject_types_supported":               []string{"public"},
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.Handle("GET "+keysPath, &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
	})

	listener, err := net.Listen("tcp4", net.JoinHostPort(h.world.outside, strconv.Itoa(h.externalPort)))
	if err != nil {
		return nil, fmt.Errorf("listening for the stand-in: %w", err)
	}
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends with close
	return &standIn{server: server}, nil
}

// close frees the port. It may be called on nil and more than once.
func (s *standIn) close() {
	if s != nil {
		_ = s.server.Close()
	}
}
