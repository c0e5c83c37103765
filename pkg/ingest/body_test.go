package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener without a network, whose time is the test's.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serve runs the test with a server that has the external listener's times, and a
// connection to it.
func serve(t *testing.T, test func(t *testing.T, s *scene, conn net.Conn, answers *bufio.Reader)) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Rates{})
		listener := &pipes{make(chan net.Conn), make(chan struct{})}
		server := external(s)
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		ours, theirs := net.Pipe()
		listener.conns <- theirs
		test(t, s, ours, bufio.NewReader(ours))
		_ = ours.Close()
		_ = server.Shutdown(context.Background())
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

func external(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 90 * time.Second, MaxHeaderBytes: 16 << 10,
	}
}

// request is a post to work-1, with the last of its headers and what follows.
func request(token, rest string) string {
	if !strings.Contains(rest, "\r\n\r\n") {
		rest += "\r\n\r\n"
	}
	return "POST /api/pods/work-1/artifacts/canary HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer " + token + "\r\n" + rest
}

// answered reads an answer, and reports whether the connection stays.
func answered(t *testing.T, answers *bufio.Reader) (code int, stays bool) {
	t.Helper()
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Errorf("no answer: %v", err)
		return 0, false
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
	return response.StatusCode, !response.Close
}

func TestBodies(t *testing.T) {
	endless := func(conn net.Conn, line string, every time.Duration) int {
		for sent := 0; ; sent += len(line) {
			_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
			if _, err := io.WriteString(conn, line); err != nil {
				return sent
			}
			time.Sleep(every)
		}
	}
	tests := map[string]struct {
		junk  bool // instead of the pod's token
		head  string
		send  func(conn net.Conn) int // nil: the body is in head
		code  int
		stays bool
		took  time.Duration
		most  int // bytes of the body that are read, of what is sent
	}{
		"a whole body":                            {head: "Content-Length: 5\r\n\r\nalive", code: 204, stays: true},
		"a body that never comes":                 {head: "Content-Length: 5", code: 408, took: 5 * time.Second},
		"a body that drips":                       {head: "Content-Length: 1000", send: func(c net.Conn) int { return endless(c, "x", time.Second) }, code: 408, took: 5 * time.Second, most: 6},
		"a body without length that drips":        {head: "Transfer-Encoding: chunked", send: func(c net.Conn) int { return endless(c, "1\r\nx\r\n", time.Second) }, code: 408, took: 5 * time.Second, most: 36},
		"a body without end":                      {head: "Transfer-Encoding: chunked", send: func(c net.Conn) int { return endless(c, "400\r\n"+strings.Repeat("x", 1024)+"\r\n", 0) }, code: 413, most: 8 << 10},
		"1 GB":                                    {head: "Content-Length: 1073741824", send: func(c net.Conn) int { return endless(c, strings.Repeat("x", 1024), 0) }, code: 413, most: 8 << 10},
		"junk's whole body is drained":            {junk: true, head: "Content-Length: 5\r\n\r\nalive", code: 401, stays: true},
		"junk's body that never comes":            {junk: true, head: "Content-Length: 5", code: 401, took: time.Second},
		"junk's body without end isn't read":      {junk: true, head: "Transfer-Encoding: chunked", send: func(c net.Conn) int { return endless(c, "400\r\n"+strings.Repeat("x", 1024)+"\r\n", 0) }, code: 401, most: 8 << 10},
		"junk's whole body without length":        {junk: true, head: "Transfer-Encoding: chunked\r\n\r\n5\r\nalive\r\n0\r\n\r\n", code: 401, stays: true},
		"junk's body without length that drips":   {junk: true, head: "Transfer-Encoding: chunked", send: func(c net.Conn) int { return endless(c, "1\r\nx\r\n", 100*time.Millisecond) }, code: 401, took: time.Second, most: 66},
		"junk's 1 GB isn't read":                  {junk: true, head: "Content-Length: 1073741824", send: func(c net.Conn) int { return endless(c, strings.Repeat("x", 1024), 0) }, code: 413, most: 8 << 10},
		"junk's body that it asks leave to send":  {junk: true, head: "Content-Length: 5\r\nExpect: 100-continue", code: 401},
		"junk's body that drips":                  {junk: true, head: "Content-Length: 1000", send: func(c net.Conn) int { return endless(c, "x", 100*time.Millisecond) }, code: 401, took: time.Second, most: 11},
		"a body that is shorter than it says":     {head: "Content-Length: 5", send: func(c net.Conn) int { _, _ = io.WriteString(c, "ali"); return 3 }, code: 408, took: 5 * time.Second, most: 3},
		"a chunk whose length can't be read":      {head: "Transfer-Encoding: chunked", send: func(c net.Conn) int { _, _ = io.WriteString(c, "zz\r\n"); return 0 }, code: 408},
		"a length that is given in two ways":      {head: "Content-Length: 5\r\nContent-Length: 6", code: 400},
		"a body that no header speaks of, junk's": {junk: true, head: "X-A: b", code: 401, stays: true},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			serve(t, func(t *testing.T, s *scene, conn net.Conn, answers *bufio.Reader) {
				token := s.broughtKey.token(t, claimsFor("work-1", podUID))
				if tc.junk {
					token = "junk"
				}
				began, sent := time.Now(), make(chan int, 1)
				go func() {
					_, _ = io.WriteString(conn, request(token, tc.head))
					if tc.send == nil {
						sent <- 0
						return
					}
					sent <- tc.send(conn)
				}()
				code, stays := answered(t, answers)
				if took := time.Since(began); code != tc.code || stays != tc.stays || took != tc.took {
					t.Errorf("got %d, stays: %t, after %s, want %d, %t, %s", code, stays, took, tc.code, tc.stays, tc.took)
				}
				if n := <-sent; n > tc.most {
					t.Errorf("%d bytes were read, want %d at most", n, tc.most)
				}
			})
		})
	}
}

func TestRefusedPodKeepsItsConnection(t *testing.T) {
	serve(t, func(t *testing.T, s *scene, conn net.Conn, answers *bufio.Reader) {
		token := s.broughtKey.token(t, claimsFor("work-1", podUID))
		for i, want := range []int{503, 503, 204, 204} {
			uid := podUID
			if want == 503 {
				uid = ""
			}
			s.records.expect("work-1", Expected{Registration: brought, UID: uid})
			go func() { _, _ = io.WriteString(conn, request(token, "Content-Length: 5\r\n\r\nalive")) }()
			code, stays := answered(t, answers)
			if code != want || !stays {
				t.Errorf("post %d: got %d, stays: %t, want %d", i, code, stays, want)
			}
			time.Sleep(7 * time.Second) // longer than any body may take
		}
	})
}

// The deadline of the body is none for what comes after it.
func TestReceiverThatTakesItsTimeIsLeftToIt(t *testing.T) {
	for took, want := range map[time.Duration]int{9 * time.Second: 204, 11 * time.Second: 503} {
		t.Run(fmt.Sprint(took), func(t *testing.T) {
			serve(t, func(t *testing.T, s *scene, conn net.Conn, answers *bufio.Reader) {
				s.records.delay = took
				token := s.broughtKey.token(t, claimsFor("work-1", podUID))
				go func() { _, _ = io.WriteString(conn, request(token, "Content-Length: 5\r\n\r\nalive")) }()
				began := time.Now()
				code, _ := answered(t, answers)
				if code != want {
					t.Errorf("got %d after %s, want %d", code, time.Since(began), want)
				}
			})
		})
	}
}

func TestOneWhoLeavesEndsNoCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Rates{})
		s.fleet.delay = 3 * time.Second
		token := s.cell.token(t, claimsFor("work-3", podUID))
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		p := &post{name: "work-3", expected: s.records.pods["work-3"], known: true}
		var posts sync.WaitGroup
		posts.Go(func() {
			if got := s.identify(ctx, p, token); got != ReasonInterrupted {
				t.Errorf("the hasty one: got %q", got)
			}
		})
		synctest.Wait()
		if got := s.identify(t.Context(), p, token); got != "" || s.fleet.asked() != 1 {
			t.Errorf("the patient one: got %q after %d questions", got, s.fleet.asked())
		}
		posts.Wait()
		time.Sleep(time.Minute) // until nothing is under way
	})
}
