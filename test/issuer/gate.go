package issuer

import (
	"io"
	"log"
	"net"
	"sync"
)

// gate is a listener that can play dead: while it's shut, connections are cut
// before a byte is read.
type gate struct {
	net.Listener

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]struct{}
}

func newGate(l net.Listener) *gate {
	return &gate{Listener: l, conns: map[net.Conn]struct{}{}}
}

// Accept returns the next connection that comes while the gate is open.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := g.admit(conn); c != nil {
			return c, nil
		}
		conn.Close()
	}
}

func (g *gate) admit(conn net.Conn) net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil
	}
	c := &gatedConn{Conn: conn, gate: g}
	g.conns[c] = struct{}{}
	return c
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	g.shut = !open
	var cut []net.Conn
	if g.shut {
		for c := range g.conns {
			cut = append(cut, c)
		}
	}
	g.mu.Unlock()
	for _, c := range cut {
		c.Close()
	}
}

type gatedConn struct {
	net.Conn
	gate *gate
}

func (c *gatedConn) Close() error {
	c.gate.mu.Lock()
	delete(c.gate.conns, c)
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// discard swallows the server's complaints about connections that were cut on
// purpose.
func discard() *log.Logger { return log.New(io.Discard, "", 0) }
