package resilience

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// gate is one run's own way to the balancer. The runs share this process, and
// client-go would give them one connection, where pipelines have one each; and
// what a process that ends would close, gate.close does.
type gate struct {
	url, upstream string

	listener net.Listener
	passing  sync.WaitGroup

	mu     sync.Mutex
	open   []net.Conn
	closed bool
}

func openGate() (*gate, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	g := &gate{
		url: fmt.Sprintf("https://localhost:%s", port), listener: listener,
		upstream: strings.Replace(hub.Hub.Balancer.URL, "https://localhost", "127.0.0.1", 1),
	}
	g.passing.Go(g.accept)
	return g, nil
}

func (g *gate) accept() {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return // closed
		}
		g.passing.Go(func() { g.pass(conn) })
	}
}

// pass connects the run to the balancer until either side ends.
func (g *gate) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp4", g.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	if !g.keep(client, server) {
		return
	}
	g.passing.Go(func() {
		_, _ = io.Copy(server, client)
		_, _ = client.Close(), server.Close()
	})
	_, _ = io.Copy(client, server)
}

func (g *gate) keep(both ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = append(g.open, both...)
	return !g.closed
}

// close ends every connection.
func (g *gate) close() {
	_ = g.listener.Close()
	g.mu.Lock()
	g.closed = true
	for _, conn := range g.open {
		_ = conn.Close()
	}
	g.mu.Unlock()
	g.passing.Wait()
}
