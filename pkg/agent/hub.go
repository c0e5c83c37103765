package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	client "cellcast.io/cellcast/generated/clientset/versioned/typed/cellcast/v1alpha1"
)

// requestTimeout bounds one report, connection included.
const requestTimeout = 10 * time.Second

// hub sends reports to the hub's direct door. The token and the CA are read
// from their files for each report, so a rotated one is used at once. It isn't
// safe for concurrent use.
type hub struct {
	url       string // https, scheme and host
	caFile    string // empty means the system's roots
	tokenFile string

	ca        []byte
	transport *http.Transport
	client    *client.CellcastV1alpha1Client
}

// report sends one report, once: client-go would by itself send the same
// figures ten times over when it's told to wait. An attempt that wasn't
// answered leaves no connection behind, so that the next may reach another
// replica.
func (h *hub) report(ctx context.Context, cell string, report *v1alpha1.CellCapacity) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	if err := h.connect(); err != nil {
		return err
	}
	err := h.client.RESTClient().Post().
		Resource("cells").Name(cell).SubResource("capacity").
		MaxRetries(0).
		Body(report).
		Do(ctx).
		Into(&v1alpha1.CellCapacity{})
	if err == nil {
		return nil
	}
	if outcomeOf(err) == failed {
		h.transport.CloseIdleConnections()
	}
	return fmt.Errorf("reporting to %s: %w", h.url, err)
}

// connect prepares the client, anew when the CA file has changed.
func (h *hub) connect() error {
	var ca []byte
	if h.caFile != "" {
		var err error
		if ca, err = os.ReadFile(h.caFile); err != nil {
			return fmt.Errorf("reading the hub's CA (--hub-ca): %w", err)
		}
	}
	if h.client != nil && bytes.Equal(ca, h.ca) {
		return nil
	}
	var roots *x509.CertPool
	if h.caFile != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return fmt.Errorf("the hub's CA (--hub-ca %s) has no PEM certificate", h.caFile)
		}
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	})
	cellcast, err := client.NewForConfigAndClient(&rest.Config{Host: h.url, QPS: -1}, &http.Client{
		Transport: bearer{tokenFile: h.tokenFile, next: transport},
		// A redirect would take the token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	if err != nil {
		return fmt.Errorf("preparing the client of %s: %w", h.url, err)
	}
	if h.transport != nil {
		h.transport.CloseIdleConnections()
	}
	h.ca, h.transport, h.client = ca, transport, cellcast
	return nil
}
