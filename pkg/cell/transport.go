package cell

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	"cellcast.io/cellcast/pkg/secret"
)

// newTransport returns a connection pool of its own for one cell.
func newTransport(roots *x509.CertPool, o Options) *http.Transport {
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return &http.Transport{
		Proxy:               o.Proxy,
		DialContext:         dial,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2:   true,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second,
			MaxReceiveBufferPerStream: maxObject, // for each of maxCalls; Go's default is 4 MiB
		},
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    16,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}
}

// identity shows the cell who the hub is: its token, its user agent, and the id
// of the request that it answers, so that the cell's audit log and the hub's
// join.
type identity struct {
	next      http.RoundTripper
	tokens    TokenSource
	audience  string
	host      string
	userAgent string
}

// tokenError says that the cell wasn't asked, because the hub had no token.
type tokenError struct{ cause error }

func (e *tokenError) Error() string { return "getting the hub's own token: " + e.cause.Error() }
func (e *tokenError) Unwrap() error { return e.cause }

// RoundTrip sends the request as the hub. Where the cell answers 401 to a token
// that has been in use for a while, it's dropped and the request is sent once
// more with a new one.
func (i *identity) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" || request.URL.Host != i.host {
		closeBody(request)
		return nil, fmt.Errorf("the hub's token for %s isn't for %s://%s", i.host, request.URL.Scheme, request.URL.Host)
	}
	token, err := i.tokens.Token(request.Context(), i.audience)
	if err != nil {
		closeBody(request)
		return nil, &tokenError{err}
	}
	response, err := i.send(request, request.Body, token)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	body, repeatable := again(request)
	if !repeatable || !i.tokens.Reject(i.audience, token) {
		return response, nil
	}
	fresh, err := i.tokens.Token(request.Context(), i.audience)
	if err != nil {
		return response, nil // the 401 says more than that there's no new token
	}
	_ = response.Body.Close()
	return i.send(request, body, fresh)
}

func (i *identity) send(request *http.Request, body io.ReadCloser, token secret.Value) (*http.Response, error) {
	shown := request.Clone(request.Context())
	shown.Body = body
	shown.Header.Set("Authorization", "Bearer "+token.Reveal())
	shown.Header.Set("User-Agent", i.userAgent)
	if id := audit.GetAuditIDTruncated(request.Context()); id != "" {
		shown.Header.Set(auditapi.HeaderAuditID, id)
	}
	response, err := i.next.RoundTrip(shown)
	if err != nil {
		return nil, redacted(err, token)
	}
	if response.StatusCode < http.StatusOK {
		_ = response.Body.Close()
		return nil, errSwitched
	}
	response.Body = answer{io.LimitReader(response.Body, bound(request.Context())+1), response.Body, token}
	// Of any other status client-go makes an error, with the body as its text.
	if response.StatusCode <= http.StatusPartialContent {
		return response, nil
	}
	if err := withoutToken(response, token); err != nil {
		return nil, err
	}
	return response, nil
}

// again returns the body to send a request once more, if that can be done.
func again(request *http.Request) (io.ReadCloser, bool) {
	if request.Body == nil || request.Body == http.NoBody {
		return request.Body, true
	}
	if request.GetBody == nil {
		return nil, false
	}
	body, err := request.GetBody()
	return body, err == nil
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
}
