package cell

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/secret"
)

// TokenSource gives what the hub shows: tokens of its own, by the audience of a
// cell, or the registered token of a brought target, by Brought.Credential.
type TokenSource interface {
	// Token returns a token that is good for the audience now.
	Token(ctx context.Context, audience string) (secret.Value, error)
	// Reject says that a cell didn't believe the token. It reports whether
	// Token will give another one, so that trying once more makes sense.
	Reject(audience string, token secret.Value) bool
}

// Options are what all clients share.
type Options struct {
	// Version is the hub's, for the user agent that cells see.
	Version string
	// Proxy chooses a proxy per request. Nil means none: nothing is taken from
	// the environment unless http.ProxyFromEnvironment is given here. TLS goes
	// through a proxy, so it sees no token.
	Proxy func(*http.Request) (*url.URL, error)
	// Reserved are audiences that no cell may have, whatever its row says: what the
	// hub shows to a cell would be good elsewhere.
	Reserved []string
	// CallTimeout bounds one call, connecting included. Zero means ten seconds.
	CallTimeout time.Duration
	// Dial makes the connections. Nil means the system's own way, to any address.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Tracing makes a span of each call and tells the cell of it. Nil means none.
	Tracing trace.TracerProvider
	// Clock is for the circuit breakers. Nil means the real one.
	Clock clock.PassiveClock
}

// Clients holds one shared client per cell, or per brought target. A hub has one
// for either: what they share is where tokens come from, and how connections are
// made.
type Clients struct {
	tokens  TokenSource
	options Options
	answers statusAlone

	mu   sync.Mutex
	held map[string]held

	troubledMu sync.Mutex
	troubled   map[*Client]struct{} // those whose breaker is open, or that ail
}

// Brought is where a brought target is.
type Brought struct {
	// Address is target:<uid>, and the client's name.
	Address string
	// Credential is what its token is asked for by. It must be another one for
	// another endpoint or other certificates, so that a client which is being
	// replaced can't show the new token to the old place.
	Credential string
	// Endpoint and CABundle are those of the kubeconfig.
	Endpoint string
	CABundle []byte
}

// held is a client, and what it was made from.
type held struct {
	client *Client
	place
}

// place is what a client is made from.
type place struct {
	name, endpoint, audience string
	caBundle                 []byte
}

func (p place) equal(o place) bool {
	return p.name == o.name && p.endpoint == o.endpoint && p.audience == o.audience && bytes.Equal(p.caBundle, o.caBundle)
}

// NewClients returns an empty set of clients.
func NewClients(tokens TokenSource, options Options) *Clients {
	if options.CallTimeout == 0 {
		options.CallTimeout = 10 * time.Second
	}
	if options.Tracing == nil {
		options.Tracing = noop.NewTracerProvider()
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Clients{tokens: tokens, options: options, answers: newStatusAlone(), held: map[string]held{}, troubled: map[*Client]struct{}{}}
}

// For returns the client of the cell. It's the same one until the row's
// endpoint, CA bundle or audience changes; a rotated token changes nothing. It
// connects to nothing. The error says what is wrong with the row.
func (c *Clients) For(cluster *registryv1alpha1.Cluster) (*Client, error) {
	spec := &cluster.Spec
	if spec.Trust.Audience == "" {
		return nil, fmt.Errorf("cell %s: spec.trust.audience: is empty", cluster.Name)
	}
	if slices.Contains(c.options.Reserved, spec.Trust.Audience) {
		return nil, fmt.Errorf("cell %s: spec.trust.audience: is one that the hub itself accepts", cluster.Name)
	}
	client, err := c.at(place{cluster.Name, spec.Endpoint, spec.Trust.Audience, spec.CABundle})
	if err != nil {
		return nil, fmt.Errorf("cell %s: spec.%w", cluster.Name, err)
	}
	return client, nil
}

// Bring returns the client of a brought target. It's the same one until the
// kubeconfig names another server or other certificates; a rotated token changes
// nothing. It connects to nothing.
func (c *Clients) Bring(b Brought) (*Client, error) {
	client, err := c.at(place{b.Address, b.Endpoint, b.Credential, b.CABundle})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Address, err)
	}
	return client, nil
}

func (c *Clients) at(p place) (*Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.held[p.name]
	if known && old.equal(p) {
		return old.client, nil
	}
	client, err := c.build(p)
	if err != nil {
		return nil, err
	}
	if known {
		old.client.close()
		c.retire(old.client)
	}
	p.caBundle = bytes.Clone(p.caBundle)
	c.held[p.name] = held{client, p}
	return client, nil
}

// Forget drops the client of a row that is gone, and its idle connections.
// Calls under way end as they would have.
func (c *Clients) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, known := c.held[name]; known {
		old.client.close()
		delete(c.held, name)
		c.retire(old.client)
	}
}

// Parked are the cells that no credential is to be had of for the moment: they
// could not be connected to, or have answered several times that they can't
// serve. When the pause of one is over it isn't among them any more: the next
// call tries it.
func (c *Clients) Parked() []string {
	c.troubledMu.Lock()
	troubled := maps.Clone(c.troubled)
	c.troubledMu.Unlock()
	var names []string
	for client := range troubled {
		if client.breaker.parked() || client.ailment.lasts() {
			names = append(names, client.name)
		}
	}
	return names
}

// note keeps who is troubled. A client that isn't used any more never is, though
// a call under way may still fail.
func (c *Clients) note(client *Client, troubled bool) {
	c.troubledMu.Lock()
	defer c.troubledMu.Unlock()
	if troubled && !client.retired {
		c.troubled[client] = struct{}{}
	} else {
		delete(c.troubled, client)
	}
}

func (c *Clients) retire(client *Client) {
	c.troubledMu.Lock()
	defer c.troubledMu.Unlock()
	client.retired = true
	delete(c.troubled, client)
}

func (c *Clients) build(p place) (*Client, error) {
	endpoint, err := parseEndpoint(p.endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	roots, err := ParseCABundle(p.caBundle)
	if err != nil {
		return nil, fmt.Errorf("caBundle: %w", err)
	}
	connection := newTransport(roots, c.options)
	client := &Client{name: p.name, timeout: c.options.CallTimeout, calls: make(chan struct{}, maxCalls),
		close: connection.CloseIdleConnections, ailment: ailment{clock: c.options.Clock}}
	client.troubled = func(is bool) { c.note(client, is) }
	client.breaker = newBreaker(&identity{
		next: connection, tokens: c.tokens, audience: p.audience,
		host: endpoint.Host, userAgent: "cellcast-hub/" + c.options.Version,
	}, c.options.Clock, func() {
		connection.CloseIdleConnections()
		client.troubled(true)
	}, func() { client.troubled(false) })
	hub := &http.Client{
		Transport: c.traced(client.breaker),
		// A redirect would take the hub's token wherever the cell says.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	client.api, err = rest.UnversionedRESTClientForConfigAndClient(&rest.Config{
		Host:           endpoint.String(),
		QPS:            -1, // priority and fairness at the cell is what bounds us
		WarningHandler: rest.NoWarnings{},
		ContentConfig:  rest.ContentConfig{NegotiatedSerializer: c.answers},
	}, hub)
	if err != nil {
		return nil, err
	}
	return client, nil
}

// traced makes a span of each call and sends its traceparent to the cell. The
// baggage of the caller's own trace stays here: it's words of the caller's
// choice, which the cell would take for the hub's.
func (c *Clients) traced(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(next,
		otelhttp.WithTracerProvider(c.options.Tracing),
		otelhttp.WithPropagators(propagation.TraceContext{}))
}
