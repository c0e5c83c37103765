package vault

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/vault/api"
)

// maxAnswer is the most bytes that are read of an answer.
const maxAnswer = 1 << 20

// newClient returns a client of the library's that has nothing but what the
// Options say. It holds no token.
func newClient(o Options) (*api.Client, error) {
	u, err := url.Parse(o.Address)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the address of Vault must be an https URL without userinfo, query or fragment")
	}
	connection, err := newTransport(o)
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(&api.Config{
		Address:    o.Address,
		HttpClient: &http.Client{Transport: guard{connection}},
		MaxRetries: 0, // a read has ten seconds, and is repeated by whoever wants it
	})
	if err != nil { // which can quote a variable, such as a proxy with its password
		return nil, errors.New("the client of Vault can't be made, probably because a VAULT_ variable in the environment is malformed: unset them all, for none is used")
	}
	// The library takes these from the environment whatever its Config says.
	client.SetToken("")
	client.SetHeaders(http.Header{api.RequestHeaderName: {"true"}})
	if o.Namespace != "" {
		client.SetNamespace(o.Namespace)
	}
	client.SetWrappingLookupFunc(func(string, string) string { return "" })
	return client, nil
}

func newTransport(o Options) (*http.Transport, error) {
	var roots *x509.CertPool
	if len(o.CA) > 0 {
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("the certificates for Vault hold none that can be read: give them in PEM")
		}
	}
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return &http.Transport{
		// No Proxy, so none of the environment's.
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
	}, nil
}

// guard lets no redirect and no endless answer through to the library, which
// would follow the one with the token and keep the other.
type guard struct{ next http.RoundTripper }

func (g guard) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := g.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w (%d)", errRedirect, response.StatusCode)
	}
	response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	return response, nil
}
