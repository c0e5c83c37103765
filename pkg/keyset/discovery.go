package keyset

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"
)

const (
	wellKnown = "/.well-known/openid-configuration"
	redirects = 3
)

// Discovery returns a Fetch that reads the issuer's discovery document and
// then the key set that it names. The document comes from discoveryURL where
// set, else from below the issuer's URL, and must name the issuer exactly
// (OpenID Connect Discovery section 4.3). Both are read each time, so a key
// set that moves is found. Nothing but https is spoken.
func Discovery(client *http.Client, issuer, discoveryURL string) Fetch {
	if discoveryURL == "" {
		discoveryURL = strings.TrimSuffix(issuer, "/") + wellKnown
	}
	return func(ctx context.Context) ([]byte, error) {
		body, err := get(ctx, client, discoveryURL)
		if err != nil {
			return nil, fmt.Errorf("read the discovery document: %w", err)
		}
		document, err := parseMetadata(body)
		if err != nil {
			return nil, err
		}
		if document.Issuer != issuer {
			return nil, fmt.Errorf("the discovery document is of issuer %.256q, not of %q", document.Issuer, issuer)
		}
		keys, err := get(ctx, client, document.Keys)
		if err != nil {
			return nil, fmt.Errorf("read the key set: %w", err)
		}
		return keys, nil
	}
}

// Issuer returns the issuer that a discovery document names. It is for an API
// server that is asked what it calls itself: the document was read from there,
// and its word goes for its own tokens alone.
func Issuer(discovery []byte) (string, error) {
	if len(discovery) > MaxDocument {
		return "", fmt.Errorf("the discovery document has more than %d bytes", MaxDocument)
	}
	document, err := parseMetadata(discovery)
	if err != nil {
		return "", err
	}
	if document.Issuer == "" {
		return "", errors.New("the discovery document names no issuer")
	}
	return document.Issuer, nil
}

// metadata is what is read of a discovery document.
type metadata struct {
	Issuer string `json:"issuer"`
	Keys   string `json:"jwks_uri"`
}

func parseMetadata(document []byte) (metadata, error) {
	var m metadata
	if err := json.Unmarshal(document, &m); err != nil {
		return metadata{}, fmt.Errorf("read the discovery document: it's not JSON that can be read: %w", err)
	}
	return m, nil
}

// Client returns an HTTP client for Discovery that trusts the PEM certificates,
// or the system's roots where there are none. It keeps to the proxy of the
// environment, follows at most three redirects, to https alone, and gives up
// after ten seconds.
func Client(caBundle []byte) (*http.Client, error) {
	var roots *x509.CertPool
	if len(caBundle) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(caBundle) {
			return nil, errors.New("the CA bundle holds no PEM certificate")
		}
	}
	return &http.Client{
		Timeout:       fetchTimeout,
		CheckRedirect: followHTTPS,
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}, nil
}

func followHTTPS(next *http.Request, via []*http.Request) error {
	if len(via) > redirects {
		return fmt.Errorf("more than %d redirects", redirects)
	}
	return checkURL(next.URL)
}
