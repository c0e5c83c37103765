package cell

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
)

// at returns a client of a cell that answers by the handler, over HTTP/1.1 or 2.
func at(t *testing.T, over2 bool, timeout time.Duration, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.EnableHTTP2 = over2
	server.StartTLS()
	t.Cleanup(server.Close)
	return clientOf(t, server, Options{CallTimeout: timeout})
}

// clientOf is the client of a cell that the server stands for.
func clientOf(t *testing.T, server *httptest.Server, o Options) *Client {
	t.Helper()
	client, err := NewClients(oneToken{}, o).For(&registryv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: registryv1alpha1.ClusterSpec{
			Endpoint: server.URL,
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			Trust:    registryv1alpha1.ClusterTrust{Audience: "cellcast:cell:a"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// verbatim answers with the text, in which $ stands for the Authorization header,
// and then says nothing more until the client hangs up.
func verbatim(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		_, _ = io.WriteString(connection, strings.ReplaceAll(text, "$", r.Header.Get("Authorization")))
		_, _ = io.Copy(io.Discard, connection)
	}
}

// After a 101 the connection is whatever the two agreed on, and no context ends its
// reading.
func TestA101EndsTheCallAtOnce(t *testing.T) {
	for sentence, headers := range map[string]string{
		"with an upgrade":    "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n",
		"without an upgrade": "",
	} {
		t.Run(sentence, func(t *testing.T) {
			client := at(t, false, time.Minute, verbatim("HTTP/1.1 101 Switching Protocols\r\n"+headers+"\r\n"))
			for call, do := range map[string]func(context.Context) error{
				"read":   func(ctx context.Context) error { _, err := client.JWKS(ctx); return err },
				"create": func(ctx context.Context) error { _, err := client.WhoAmI(ctx); return err },
				"delete": func(ctx context.Context) error { return client.DeletePod(ctx, "team", "p", "") },
			} {
				ended := make(chan error, 1)
				go func() { ended <- do(t.Context()) }()
				select {
				case err := <-ended:
					if err == nil || failure.Of(err) != failure.Unexpected {
						t.Errorf("%s: got %v, want Unexpected: it's an answer", call, err)
					}
				case <-time.After(5 * time.Second):
					t.Fatalf("%s: the call goes on", call)
				}
			}
			// And like every answer it says that the cell can be reached.
			for range 2 * failuresToOpen {
				if _, err := client.WhoAmI(t.Context()); failure.Of(err) != failure.Unexpected {
					t.Fatalf("got %v", err)
				}
			}
		})
	}
}

// So long as nobody is told of them, net/http counts them with the headers.
func TestAnswersBeforeTheAnswerAreBounded(t *testing.T) {
	client := at(t, false, time.Minute, verbatim(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 5000)))
	began := time.Now()
	if _, err := client.JWKS(t.Context()); failure.Of(err) != failure.Unreachable || time.Since(began) > 30*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

// A cell that stops in the middle of an answer holds what was read of it, for the
// call's whole time.
func TestAnAnswerIsReadUpToTheBoundOfItsCall(t *testing.T) {
	for sentence, tt := range map[string]struct {
		bound int
		do    func(*Client, context.Context) error
		want  string // after "Unexpected: "; empty: the call succeeds
	}{
		"an object":                           {maxObject, func(c *Client, ctx context.Context) error { _, err := c.GetPod(ctx, "team", "p"); return err }, "the answer has more than 65536 bytes"},
		"a list of rules":                     {maxRules, func(c *Client, ctx context.Context) error { _, err := c.ReviewRules(ctx, "team"); return err }, "the answer has more than 262144 bytes"},
		"a document":                          {MaxAnswer, func(c *Client, ctx context.Context) error { _, err := c.JWKS(ctx); return err }, "the answer has more than 1048576 bytes"},
		"one that nobody reads, which is cut": {maxObject, func(c *Client, ctx context.Context) error { return c.DeletePod(ctx, "team", "p", "") }, ""},
	} {
		for protocol, over2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			t.Run(sentence+" over "+protocol, func(t *testing.T) {
				client := at(t, over2, 10*time.Second, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, strings.Repeat(" ", tt.bound+1))
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				})
				err := tt.do(client, t.Context())
				if tt.want == "" && err != nil || tt.want != "" && (failure.Of(err) != failure.Unexpected || !strings.HasSuffix(err.Error(), "Unexpected: "+tt.want)) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		}
	}
}

// HTTP/2 takes what comes before anybody reads it: 4 MiB a call, unless it's told.
func TestWhatNobodyReadsIsNotTakenFromTheConnection(t *testing.T) {
	wrote := make(chan int, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
		sum := 0
		for sum < 8<<20 {
			n, err := io.WriteString(w, strings.Repeat(" ", 16<<10))
			if err != nil {
				break
			}
			sum += n
		}
		wrote <- sum
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	roots, err := ParseCABundle(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := newTransport(roots, Options{}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if sum := <-wrote; response.ProtoMajor != 2 || sum > 2*maxObject {
		t.Errorf("over HTTP/%d %d bytes went out though none was read", response.ProtoMajor, sum)
	}
}

// An error comes to stand in logs and in the status of a row, whichever part of the
// answer it's about.
func TestNoPartOfAnAnswerBringsTheTokenOrALongTextIntoAnError(t *testing.T) {
	const echo = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":399,"message":"$"}`
	long := strings.Repeat("x", 60<<10)
	object := func(code, headers, body string) string {
		return "HTTP/1.1 " + code + "\r\nContent-Type: application/json\r\nConnection: close\r\n" + headers + "\r\n" + body
	}
	for sentence, answer := range map[string]string{
		"the body of a 207":                   object("207 Multi-Status", "Content-Length: 200\r\n", echo+strings.Repeat(" ", 200)),
		"the body of a 302":                   object("302 Found", "Location: https://elsewhere.example/\r\nContent-Length: 200\r\n", echo+strings.Repeat(" ", 200)),
		"the body of a 399":                   object("399 Else", "Content-Length: 900000\r\n", strings.Replace(echo, "$", "$"+strings.Repeat("x", 800_000), 1)+strings.Repeat(" ", 100_000)),
		"the Location of a redirect":          object("302 Found", "Location: ::$"+long+"\r\nContent-Length: 0\r\n", ""),
		"a first line that is none":           "$" + long + "\r\n\r\n",
		"a code that is none":                 "HTTP/1.1 $" + long + "\r\n\r\n",
		"a header that is none":               "HTTP/1.1 200 OK\r\n$" + long + "\r\n\r\n",
		"a length that is none":               object("200 OK", "Content-Length: $"+long+"\r\n", ""),
		"an encoding that is none":            object("200 OK", "Transfer-Encoding: $"+long+"\r\n", ""),
		"a trailer that is none":              object("200 OK", "Transfer-Encoding: chunked\r\n", "0\r\n$\r\n\r\n"),
		"a trailer of a refusal that is none": object("403 Forbidden", "Transfer-Encoding: chunked\r\n", "0\r\n$\r\n\r\n"),
		"a type that is none":                 object("200 OK", "Content-Type: $;;"+long+"\r\nContent-Length: 0\r\n", ""),
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := at(t, false, 10*time.Second, verbatim(answer)).WhoAmI(t.Context())
			if err == nil {
				t.Fatal("the answer was taken")
			}
			if strings.Contains(err.Error(), "token-of-the-hub") {
				t.Errorf("the error has the token in it: %.600s", err)
			}
			if len(err.Error()) > maxRefusal+1<<10 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
