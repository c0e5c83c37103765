package peers

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"cellcast.io/cellcast/pkg/secret"
)

// ClientOptions say how a peer is reached and who it must prove to be.
type ClientOptions struct {
	// Path is where a peer takes batches.
	Path string
	// Token returns the token that this replica shows, and Reject is told that a
	// peer didn't believe it.
	Token  func(context.Context) (secret.Value, error)
	Reject func(secret.Value)
	// Roots returns the PEM certificates that a peer's certificate is checked
	// against. It's asked at each new connection, so a file may change.
	Roots func() ([]byte, error)
	// ServerName is the name that the certificate must be for; empty means the
	// host of the URL.
	ServerName string
}

// maxAnswer bounds what is read of a peer's answer.
const maxAnswer = 4 << 10

// NewClient returns a Post that speaks TLS to peers. It uses no proxy, follows
// no redirect, and knows no way to leave a certificate unchecked.
func NewClient(o ClientOptions) Post {
	client := &http.Client{
		Transport: &http.Transport{
			DialTLSContext:         o.dial,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context, url string, batch []byte) (string, error) {
		token, err := o.Token(ctx)
		if err != nil {
			return "", fmt.Errorf("get a token for peers: %w", err)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+o.Path, bytes.NewReader(batch))
		if err != nil {
			return "", fmt.Errorf("relay to %s: %w", url, err)
		}
		request.Header.Set("Authorization", "Bearer "+token.Reveal())
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			return "", fmt.Errorf("relay: %w", err)
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusUnauthorized {
			o.Reject(token)
		}
		instance, err := read(response)
		if err != nil {
			return "", fmt.Errorf("relay to %s: %w", url, err)
		}
		return instance, nil
	}
}

func read(response *http.Response) (instance string, err error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the peer answered %s: %.256q", response.Status, body)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || a.Instance == "" {
		return "", errors.New("the peer's answer doesn't name its instance")
	}
	return a.Instance, nil
}

// dial connects and checks the peer's certificate.
func (o ClientOptions) dial(ctx context.Context, network, address string) (net.Conn, error) {
	roots, err := o.Roots()
	if err != nil {
		return nil, fmt.Errorf("read the certificates of peers: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return nil, errors.New("the certificates of peers: there is no PEM certificate")
	}
	name := o.ServerName
	if name == "" {
		if name, _, err = net.SplitHostPort(address); err != nil {
			return nil, err
		}
	}
	dialer := &tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: name}}
	return dialer.DialContext(ctx, network, address)
}
