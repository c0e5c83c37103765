package targets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// poster posts to the hub's external listener as a pod does, over connections of
// its own.
type poster struct {
	client *http.Client
	url    string
}

// answered is what a post was answered with.
type answered struct {
	Code int
	Body string
}

// rejected is what every token is answered with that isn't accepted.
func rejected() answered { return answered{http.StatusUnauthorized, "the token isn't accepted\n"} }

// newPoster comes from this address. Any of loopback does, also where the listener
// is on a link to pods: it's this machine's own.
func newPoster(t *testing.T, from string) *poster {
	t.Helper()
	return newPosterAt(t, from, hub.Hub.ExternalURL, hub.Hub.ServerCABundle)
}

func newPosterAt(t *testing.T, from, url string, ca []byte) *poster {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("the listener has no certificates to check it by")
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &poster{&http.Client{Transport: transport, Timeout: time.Minute}, url}
}

// post shows the token for the pod.
func (p *poster) post(ctx context.Context, pod, token string) (answered, error) {
	return p.send(ctx, pod, token, strings.NewReader("alive"))
}

// accepted reports whether the token is, and leaves no receipt: it posts more than
// a canary may, without saying how much, which is found out after the token was
// judged.
func (p *poster) accepted(ctx context.Context, pod, token string) error {
	got, err := p.send(ctx, pod, token, io.MultiReader(strings.NewReader(strings.Repeat("alive", 300))))
	if err == nil && got.Code != http.StatusRequestEntityTooLarge {
		err = fmt.Errorf("the answer is %+v", got)
	}
	return err
}

// takes reports whether the post was taken.
func (p *poster) takes(ctx context.Context, pod, token string) error {
	got, err := p.post(ctx, pod, token)
	if err == nil && got.Code != http.StatusNoContent {
		err = fmt.Errorf("the answer is %+v", got)
	}
	return err
}

func (p *poster) send(ctx context.Context, pod, token string, body io.Reader) (answered, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/api/pods/"+pod+"/artifacts/canary", body)
	if err != nil {
		return answered{}, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := p.client.Do(r)
	if err != nil {
		return answered{}, err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	return answered{response.StatusCode, string(said)}, err
}
