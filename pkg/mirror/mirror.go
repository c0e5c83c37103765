// Package mirror serves the OIDC discovery document and the key set of the
// hub's API server to the cells, which can't reach that server themselves. It's
// how a cell comes to trust the hub's tokens, and it stands on the internet: it
// answers GET and HEAD on two paths and nothing else, it holds no state but the
// last answer, and it gives out only what the two documents are meant to have.
package mirror

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"
)

// The paths that are served, both here and by the hub's API server.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/openid/v1/jwks"
)

// Upstream reads a document of the hub's API server.
type Upstream interface {
	// Get returns the body at the path. It fails for more than MaxDocument
	// bytes.
	Get(ctx context.Context, path string) ([]byte, error)
}

// Options are what the mirror needs to know.
type Options struct {
	// ExternalURL is where cells reach the mirror, such as
	// https://hub.example.com. The discovery document's jwks_uri is made from
	// it. A path in it must be taken off before a request gets here.
	ExternalURL string
	// Clock is what documents age by. Nil means the real one.
	Clock clock.PassiveClock
}

// Mirror is the handler.
type Mirror struct {
	documents map[string]*document
}

// New returns a mirror of the upstream.
func New(upstream Upstream, options Options) (*Mirror, error) {
	external, err := parseExternal(options.ExternalURL)
	if err != nil {
		return nil, err
	}
	now := options.Clock
	if now == nil {
		now = clock.RealClock{}
	}
	jwksURI := external.JoinPath(KeysPath).String()
	return &Mirror{documents: map[string]*document{
		DiscoveryPath: {
			contentType: "application/json", upstream: upstream, path: DiscoveryPath, clock: now,
			filter: func(raw []byte) ([]byte, error) { return discovery(raw, jwksURI) },
		},
		KeysPath: {
			contentType: "application/jwk-set+json", upstream: upstream, path: KeysPath, clock: now,
			filter: keySet,
		},
	}}, nil
}

// ServeHTTP answers from a document that is at most Freshness old. While the
// hub's API server can't be asked it answers 503: cells keep the keys that they
// have.
//
// There is no limit on the rate of requests here. One over all sources would let
// a flood shut the cells out, and the flood costs the hub's API server nothing:
// it's asked once per Freshness and path.
func (m *Mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	document, known := m.documents[r.URL.Path]
	switch {
	case !known:
		http.Error(w, "not found", http.StatusNotFound)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are served here", http.StatusMethodNotAllowed)
		return
	}
	body, err := document.get(r.Context())
	if err != nil {
		w.Header().Set("Retry-After", seconds(Freshness))
		http.Error(w, "the hub's API server doesn't give this document now", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", document.contentType)
	w.Header().Set("Cache-Control", "public, max-age="+seconds(Freshness))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // fails only where the client went away
}

// protect sets what keeps a browser from making anything of an answer.
func protect(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Strict-Transport-Security", "max-age=31536000")
	header.Set("X-Content-Type-Options", "nosniff")
}

func parseExternal(text string) (*url.URL, error) {
	external, err := url.Parse(text)
	if err != nil || external.Scheme != "https" || external.Hostname() == "" {
		return nil, errors.New("the external URL must be an https URL with a host, such as https://hub.example.com")
	}
	if external.User != nil || strings.ContainsAny(text, "?#") {
		return nil, errors.New("the external URL must have no userinfo, query or fragment")
	}
	return external, nil
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
