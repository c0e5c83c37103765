package world

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// greeter is a backend that says its name to each line that it's sent.
type greeter struct {
	listener net.Listener
	ready    atomic.Bool
}

func newGreeter(t *testing.T, name string) *greeter {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	g := &greeter{listener: listener}
	g.ready.Store(true)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintln(conn, name)
				}
			}()
		}
	}()
	return g
}

func (g *greeter) backend() backend {
	return backend{addresses: []string{g.listener.Addr().String()}, ready: func(context.Context) error {
		if !g.ready.Load() {
			return errors.New("not ready")
		}
		return nil
	}}
}

func dial(t *testing.T, port int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// greet returns who is at the other end of a connection, or "" when nobody is.
func greet(conn net.Conn) string {
	fmt.Fprintln(conn, "hello")
	line := bufio.NewScanner(conn)
	line.Scan()
	return line.Text()
}

func TestBalancer(t *testing.T) {
	var free ports
	defer free.release()
	port, err := free.take()
	if err != nil {
		t.Fatal(err)
	}
	a, b := newGreeter(t, "a"), newGreeter(t, "b")
	balancer, err := newBalancer([]backend{a.backend(), b.backend()}, fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer balancer.close()
	if want := fmt.Sprintf("https://localhost:%d", port); balancer.URL != want {
		t.Errorf("URL is %s, want %s", balancer.URL, want)
	}

	first, second, third := dial(t, port), dial(t, port), dial(t, port)
	in := []string{greet(first), greet(second), greet(third)}
	counts := map[string]int{}
	for _, who := range in {
		counts[who]++
	}
	if counts["a"]+counts["b"] != 3 || counts["a"] == 0 || counts["b"] == 0 {
		t.Fatalf("three connections went to %v", in)
	}

	// One is unready: new connections avoid it, and the old ones stay.
	a.ready.Store(false)
	until := time.Now().Add(10 * time.Second)
	for balancer.isReady(0) && time.Now().Before(until) {
		time.Sleep(10 * time.Millisecond)
	}
	if diff := cmp.Diff([]string{"b", "b"}, []string{greet(dial(t, port)), greet(dial(t, port))}); diff != "" {
		t.Errorf("while a isn't ready (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(in, []string{greet(first), greet(second), greet(third)}); diff != "" {
		t.Errorf("connections that were there moved (-want +got):\n%s", diff)
	}

	// Nobody is ready: a new connection ends without a word.
	b.ready.Store(false)
	for balancer.isReady(1) && time.Now().Before(until) {
		time.Sleep(10 * time.Millisecond)
	}
	if who := greet(dial(t, port)); who != "" {
		t.Errorf("while nobody is ready, %s answered", who)
	}

	balancer.close()
	if who := greet(first); who != "" {
		t.Errorf("through a closed balancer %s answered", who)
	}
}

func TestReadinessOfABackend(t *testing.T) {
	slow, unready := context.DeadlineExceeded, errors.New("not ready")
	for name, c := range map[string]struct {
		answers []error
		want    bool
	}{
		"one that is ready":                   {[]error{nil}, true},
		"one that says it isn't":              {[]error{nil, unready}, false},
		"one that comes back":                 {[]error{unready, nil}, true},
		"one that is slow twice":              {[]error{nil, slow, slow}, true},
		"one that is slow three times":        {[]error{nil, slow, slow, slow}, false},
		"one that is slow now and again":      {[]error{nil, slow, slow, nil, slow, slow}, true},
		"one that goes and is slow to say so": {[]error{nil, unready, slow}, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			b := before(func(context.Context) error {
				asked++
				return c.answers[asked-1]
			})
			for range c.answers {
				b.probe(t.Context())
			}
			if b.isReady(0) != c.want {
				t.Errorf("after %v it's ready: %t", c.answers, b.isReady(0))
			}
		})
	}
}

// before is a balancer before one backend, which asks when the test says so.
func before(ready func(context.Context) error) *Balancer {
	return &Balancer{backends: []backend{{ready: ready}}, ready: make([]bool, 1), leaving: make([]bool, 1), silent: make([]int, 1)}
}

// A replica can be told to end after it has answered, and before that counts.
func TestBalancerBelievesNoReplicaThatLeaves(t *testing.T) {
	way := &route{}
	leaves := false
	way.balancer = before(func(context.Context) error {
		if leaves {
			way.leave()
		}
		return nil
	})
	for _, step := range []struct {
		what         string
		leaves, want bool
	}{
		{"it's there", false, true},
		{"it leaves while it's asked", true, false},
		{"it drains", false, false},
	} {
		leaves = step.leaves
		way.balancer.probe(t.Context())
		if got := way.balancer.isReady(0); got != step.want {
			t.Errorf("%s: ready is %t", step.what, got)
		}
	}
	way.join()
	way.balancer.probe(t.Context())
	if !way.balancer.isReady(0) {
		t.Error("it has come back, and isn't ready")
	}
}

func TestBalancerLeadsToAServerThatIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	balancer := before(func(context.Context) error { return nil })
	server := &Server{
		Process: newTable(dir, false).add(command{name: "server", path: "/bin/sleep", args: []string{"60"}}),
		route:   &route{balancer: balancer},
	}
	t.Cleanup(func() { _ = server.Kill() })
	for range 2 {
		if err := server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		balancer.probe(t.Context())
		if !balancer.isReady(0) {
			t.Error("it isn't ready once it's started")
		}
		_ = server.Terminate(t.Context()) // sleep ends by the signal, which isn't orderly
		balancer.probe(t.Context())
		if balancer.isReady(0) {
			t.Error("it's ready though it's terminated")
		}
	}
}
