// Package app is what the canary does: it posts one small body with the pod's
// projected token to the hub's external listener, again and again until the hub
// takes it or the time is over.
//
// It trusts the certificate authority that it's given and no other, uses no proxy
// of its environment, follows no redirect, and sends the token nowhere but to the
// one URL. No line that it writes holds the token, or anything that a server said
// after it had seen the token. It uses the standard library alone: its image is
// pulled onto clusters of strangers.
package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// attemptWithin bounds one attempt, from the connection to the answer.
	attemptWithin = 10 * time.Second
	// firstPause is the pause after the first attempt. It doubles up to longestPause.
	firstPause   = 500 * time.Millisecond
	longestPause = 5 * time.Second
	// mostToken bounds the token file: a ServiceAccount token has some 1,000 bytes.
	mostToken = 16 << 10
)

// The exit codes.
const (
	exitAccepted = 0 // the hub answered 2xx
	exitFailed   = 1 // it didn't in time, or the environment is wrong
)

// Run does the canary's job as the environment says and returns the exit code.
// Each attempt is one line on out.
func Run(ctx context.Context, getenv func(string) string, out io.Writer) int {
	c, err := configure(getenv)
	if err != nil {
		_, _ = fmt.Fprintln(out, "canary:", err)
		return exitFailed
	}
	if err := c.post(ctx, &http.Client{
		Transport: c.transport(),
		// A redirect is an answer like any other, and not the one that's wanted.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, out); err != nil {
		_, _ = fmt.Fprintln(out, "canary:", err)
		return exitFailed
	}
	return exitAccepted
}

// transport is http.DefaultTransport without what the environment could change.
func (c config) transport() *http.Transport {
	return &http.Transport{
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots},
		TLSHandshakeTimeout:    attemptWithin,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true, // the next attempt may reach another replica
	}
}

// post tries until the hub takes the body, for at most the deadline.
func (c config) post(ctx context.Context, client *http.Client, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, c.deadline)
	defer cancel()
	pause := firstPause
	for attempt := 1; ; attempt++ {
		code, err := c.attempt(ctx, client)
		switch {
		case err != nil:
			_, _ = fmt.Fprintf(out, "attempt %d: %v\n", attempt, err)
		case code >= 200 && code <= 299:
			_, _ = fmt.Fprintf(out, "attempt %d: the hub accepted it (%d)\n", attempt, code)
			return nil
		default:
			_, _ = fmt.Fprintf(out, "attempt %d: the hub answered %d %s\n", attempt, code, http.StatusText(code))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the hub accepted none of %d attempts: %w", attempt, ctx.Err())
		case <-time.After(pause):
			pause = min(2*pause, longestPause)
		}
	}
}

// attempt posts once and returns the status code. Its errors are fit to print.
func (c config) attempt(ctx context.Context, client *http.Client) (int, error) {
	token, err := c.token() // at each attempt, for the kubelet renews it
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(map[string]string{"run": c.run})
	if err != nil {
		return 0, errors.New("the run's id isn't text")
	}
	ctx, cancel := context.WithTimeout(ctx, attemptWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the hub's URL can't be used")
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, printable(err)
	}
	_ = response.Body.Close()
	return response.StatusCode, nil
}

// token reads the projected token. What is wrong with one is said without it.
func (c config) token() (string, error) {
	file, err := os.Open(c.tokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(file, mostToken+1))
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(content))
	switch {
	case len(content) > mostToken:
		return "", fmt.Errorf("%s has more than %d bytes: it's no token", c.tokenFile, mostToken)
	case token == "":
		return "", fmt.Errorf("%s is empty", c.tokenFile)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s holds something that can't stand in a header", c.tokenFile)
	}
	return token, nil
}

// printable returns what may be said of an attempt that got no answer. Errors of
// the connection and of the handshake are told whole: until then no server has
// seen the token. Any later one could quote it back.
func printable(err error) error {
	var (
		connection  *net.OpError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		timeout     net.Error
	)
	switch {
	case errors.As(err, &certificate):
		return fmt.Errorf("the hub's certificate isn't trusted: %w", certificate.Err)
	case errors.As(err, &record):
		return errors.New("what listens there doesn't speak TLS")
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("no answer in time")
	case errors.As(err, &connection):
		return fmt.Errorf("no connection: %w", connection)
	default:
		return errors.New("the connection ended without an HTTP answer")
	}
}
