// Package issuer is a small OpenID Connect issuer for tests and the demo. It
// serves a discovery document and a key set over HTTPS and signs whatever
// claims it's given, the wrong ones too: with an unpublished key, with no key,
// or with the public key as if it were a shared secret. Its keys rotate, its
// answers can carry long cache headers, and it can go away and come back.
//
// It decides nothing about who gets a token. It's no issuer for production.
package issuer

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const wellKnown = "/.well-known/openid-configuration"

// Options say how an Issuer serves. The zero value is a good issuer on a free
// port of 127.0.0.1 with a certificate authority of its own.
type Options struct {
	// Listen is the address to listen on. Empty means 127.0.0.1:0.
	Listen string
	// Path is put behind the address in the issuer's URL, such as /ci.
	Path string
	// Name is what the issuer calls itself, where that isn't its URL: an issuer
	// that is reached by a discovery URL.
	Name string
	// Certificate is the serving certificate, and CA the PEM certificates that
	// a client checks it by. Nil means one made for the address.
	Certificate *tls.Certificate
	CA          []byte
	// CacheControl is the Cache-Control header of every answer, such as
	// max-age=604800. Empty means none.
	CacheControl string
}

// Issuer is a running issuer. Its methods are safe for concurrent use.
type Issuer struct {
	name         string // the value of iss
	base         string // of the documents' URLs
	ca           []byte
	cacheControl string
	gate         *gate
	server       *http.Server

	mu      sync.Mutex
	keys    *ring
	fetches Fetches
}

// Fetches counts the requests that an Issuer answered.
type Fetches struct {
	Discovery int
	Keys      int
}

// Start starts an issuer with one RS256 and one ES256 key. The caller closes
// it.
func Start(o Options) (*Issuer, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	keys, err := newRing()
	if err != nil {
		return nil, fmt.Errorf("make signing keys: %w", err)
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	address := listener.Addr().(*net.TCPAddr)
	if o.Certificate == nil {
		if o.Certificate, o.CA, err = selfSigned(address.IP, time.Now()); err != nil {
			listener.Close()
			return nil, fmt.Errorf("make a serving certificate: %w", err)
		}
	}
	path := strings.TrimSuffix(o.Path, "/")
	i := &Issuer{
		name:         o.Name,
		base:         "https://" + address.String() + path,
		ca:           o.CA,
		cacheControl: o.CacheControl,
		gate:         newGate(listener),
		keys:         keys,
	}
	if i.name == "" {
		i.name = i.base
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path+wellKnown, i.serveDiscovery)
	mux.HandleFunc("GET "+path+"/jwks", i.serveKeys)
	i.server = &http.Server{
		Handler:           mux,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{*o.Certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          discard(),
	}
	go i.server.ServeTLS(i.gate, "", "") //nolint:errcheck // it ends when Close is called
	return i, nil
}

// URL is the issuer's URL: the value of iss.
func (i *Issuer) URL() string { return i.name }

// DiscoveryURL is where the discovery document is served.
func (i *Issuer) DiscoveryURL() string { return i.base + wellKnown }

// CA is the PEM certificates that a client checks the issuer by.
func (i *Issuer) CA() []byte { return i.ca }

// Close stops the issuer and cuts its connections.
func (i *Issuer) Close() error {
	i.gate.set(false)
	return i.server.Close()
}

// SetReachable cuts every connection and refuses new ones, or takes them again.
func (i *Issuer) SetReachable(reachable bool) { i.gate.set(reachable) }

// Fetches returns how often the two documents were served.
func (i *Issuer) Fetches() Fetches {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// Rotate makes new keys and signs with them from now on. The ones before stay
// published when keep is true, and vanish otherwise.
func (i *Issuer) Rotate(keep bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys.rotate(keep)
}

func (i *Issuer) serveDiscovery(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	i.fetches.Discovery++
	i.mu.Unlock()
	i.write(w, map[string]any{
		"issuer":                                i.name,
		"jwks_uri":                              i.base + "/jwks",
		"response_types_supported":              []string{"id_token"},
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{RS256, ES256},
	})
}

func (i *Issuer) serveKeys(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	i.fetches.Keys++
	set := i.keys.published()
	i.mu.Unlock()
	i.write(w, set)
}

func (i *Issuer) write(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	if i.cacheControl != "" {
		w.Header().Set("Cache-Control", i.cacheControl)
	}
	json.NewEncoder(w).Encode(document) //nolint:errcheck // a client that has gone away
}
