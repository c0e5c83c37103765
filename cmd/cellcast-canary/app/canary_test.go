package app

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const secret = "eyJhbGciOiJSUzI1NiJ9.c2VjcmV0.c2lnbmF0dXJl"

// hub is a hub that answers as told and keeps what it was sent.
type hub struct {
	*httptest.Server
	requests []string
}

func newHub(t *testing.T, answer http.HandlerFunc) *hub {
	t.Helper()
	h := &hub{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.requests = append(h.requests, fmt.Sprintf("%s %s %s %s %s",
			r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), body))
		answer(w, r)
	}))
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

func (h *hub) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}))
}

// environment is a right one for the hub, with the changes given.
func (h *hub) environment(t *testing.T, changes map[string]string) func(string) string {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		envURL: h.URL, envCA: h.ca(), envPod: "cellcast-canary-x1", envRun: "run-7", envToken: token, envDeadline: "1m",
	}
	for name, value := range changes {
		all[name] = value
	}
	return func(name string) string { return all[name] }
}

// firstLine keeps what is written, and ends the run after the first line.
type firstLine struct {
	bytes.Buffer
	end context.CancelFunc
}

func (f *firstLine) Write(p []byte) (int, error) {
	defer f.end()
	return f.Buffer.Write(p)
}

func accept(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

func TestRunPostsTheTokenOnce(t *testing.T) {
	h := newHub(t, accept)
	var out bytes.Buffer
	if code := Run(t.Context(), h.environment(t, nil), &out); code != 0 {
		t.Errorf("ended with %d", code)
	}
	want := "POST /api/pods/cellcast-canary-x1/artifacts/canary Bearer " + secret + ` application/json {"run":"run-7"}`
	if len(h.requests) != 1 || h.requests[0] != want {
		t.Errorf("the hub got %q, want %q", h.requests, want)
	}
	if want := "attempt 1: the hub accepted it (202)\n"; out.String() != want {
		t.Errorf("it said %q, want %q", out.String(), want)
	}
}

func TestRunFails(t *testing.T) {
	elsewhere := newHub(t, accept)
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		changes map[string]string
		says    string // the first line
	}{
		"where the hub refuses": {
			answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
			says:   "attempt 1: the hub answered 403 Forbidden",
		},
		"where the hub redirects": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			},
			says: "attempt 1: the hub answered 307 Temporary Redirect",
		},
		"where the hub quotes the token in what isn't HTTP": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				connection, _, _ := w.(http.Hijacker).Hijack()
				_, _ = fmt.Fprintf(connection, "%s\r\n\r\n", r.Header.Get("Authorization"))
				_ = connection.Close()
			},
			says: "attempt 1: the connection ended without an HTTP answer",
		},
		"where the hub quotes the token in its status": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				connection, _, _ := w.(http.Hijacker).Hijack()
				_, _ = fmt.Fprintf(connection, "HTTP/1.1 403 %s\r\nContent-Length: 0\r\n\r\n", r.Header.Get("Authorization"))
				_ = connection.Close()
			},
			says: "attempt 1: the hub answered 403 Forbidden",
		},
		"where the hub's certificate is another's": {
			answer:  accept,
			changes: map[string]string{envCA: otherCA(t)},
			says:    "attempt 1: the hub's certificate isn't trusted: x509: certificate signed by unknown authority",
		},
		"where the hub's certificate is none of the system's": {
			answer:  accept,
			changes: map[string]string{envCA: ""},
			says:    "attempt 1: the hub's certificate isn't trusted: x509: certificate signed by unknown authority",
		},
		"without a token": {
			answer:  accept,
			changes: map[string]string{envToken: "/nonexistent/token"},
			says:    "attempt 1: reading the token: open /nonexistent/token: no such file or directory",
		},
		"without a URL":              {changes: map[string]string{envURL: ""}, says: "canary: CELLCAST_INGEST_URL isn't set"},
		"with a URL without TLS":     {changes: map[string]string{envURL: "http://hub.example.com"}, says: badURL},
		"with a URL with a password": {changes: map[string]string{envURL: "https://user:" + secret + "@hub.example.com"}, says: badURL},
		"with a URL with a query":    {changes: map[string]string{envURL: "https://hub.example.com/?a=b"}, says: badURL},
		"with a pod's name that leads elsewhere": {
			changes: map[string]string{envPod: "../../x"}, says: `canary: CELLCAST_POD "../../x" isn't the name of a pod`,
		},
		"with a CA that is none":       {changes: map[string]string{envCA: "no"}, says: "canary: CELLCAST_INGEST_CA holds no PEM certificate"},
		"with a deadline that is none": {changes: map[string]string{envDeadline: "soon"}, says: `canary: CELLCAST_DEADLINE "soon" isn't a duration such as 90s`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, c.answer)
			ctx, cancel := context.WithCancel(t.Context())
			out := &firstLine{end: cancel}
			if code := Run(ctx, h.environment(t, c.changes), out); code != 1 {
				t.Errorf("ended with %d, want 1", code)
			}
			if line, _, _ := strings.Cut(out.String(), "\n"); line != c.says {
				t.Errorf("it said %q, want %q", line, c.says)
			}
			if strings.Contains(out.String(), secret[:20]) {
				t.Errorf("the token is in what it said: %q", out.String())
			}
		})
	}
	if len(elsewhere.requests) > 0 {
		t.Errorf("the redirect was followed: %q", elsewhere.requests)
	}
}

const badURL = "canary: CELLCAST_INGEST_URL isn't an https URL of a host, without user, query and fragment"

// otherCA is a certificate that has signed nothing but itself.
func otherCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestTransportTakesNothingFromTheEnvironment(t *testing.T) {
	if transport := (config{}).transport(); transport.Proxy != nil {
		t.Error("it would use the environment's proxy")
	}
}

func TestTokenFileIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ content, says string }{
		"when it's empty":          {"\n", "is empty"},
		"when it's too long":       {strings.Repeat("a", mostToken+1), "it's no token"},
		"when it has a line break": {"secret\r\nX-Other: a", "can't stand in a header"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := config{tokenFile: path}.token()
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want that it %s", err, c.says)
			}
		})
	}
}

// roundTripper answers in memory, so that time can be a bubble's.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPostBacksOffUntilItsDeadline(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []string
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			at = append(at, fmt.Sprint(time.Since(began), " ", r.Header.Get("Authorization")))
			if err := os.WriteFile(token, []byte("renewed"), 0o600); err != nil {
				return nil, err
			}
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
		})}
		c := config{url: "https://hub.invalid/", tokenFile: token, deadline: 20 * time.Second}
		err := c.post(t.Context(), client, io.Discard)
		want := "[0s Bearer first 500ms Bearer renewed 1.5s Bearer renewed 3.5s Bearer renewed " +
			"7.5s Bearer renewed 12.5s Bearer renewed 17.5s Bearer renewed]"
		if got := fmt.Sprint(at); got != want {
			t.Errorf("attempts at %s, want %s", got, want)
		}
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 20*time.Second {
			t.Errorf("after %s it ended with %v", time.Since(began), err)
		}
	})
}

func TestAttemptIsBounded(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		_, err := config{url: "https://hub.invalid/", tokenFile: token}.attempt(t.Context(), client)
		if err == nil || err.Error() != "no answer in time" || time.Since(began) != attemptWithin {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
