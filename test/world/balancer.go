package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// probeEvery is how often a balancer asks each replica whether it is ready: a
	// cluster takes some seconds from the probe to the last node's rules.
	probeEvery = 200 * time.Millisecond
	// probeWithin bounds one such question.
	probeWithin = time.Second
	// silences is how many in a row without an answer make a replica unready.
	silences = 3
)

// Balancer stands for the hub's Service where the hub has several replicas. It
// passes TCP on, so TLS ends at the replica. A new connection goes to the ready
// replicas in turn, and stays where it is until one of its ends closes it. It
// tries no second replica, as a Service doesn't. One that is terminated gets no
// new connection from that moment on, and one that is merely slow to say whether
// it's ready keeps its place, as with a kubelet. It lives in the process that
// deployed the hub.
type Balancer struct {
	// URL is the hub's direct door, whichever replica answers.
	URL string

	backends []backend
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	ready   []bool
	leaving []bool // whatever it still says of itself
	silent  []int  // questions in a row that weren't answered in time
	turn    int
	open    map[io.Closer]bool // nil once it's closed
}

// backend is a replica as the balancer sees it.
type backend struct {
	ready func(context.Context) error
	// addresses are where it listens, in the order of the balancer's own.
	addresses []string
}

// route is how the balancer leads to one of its backends.
type route struct {
	balancer *Balancer
	which    int
}

// newBalancer listens on the addresses: the i-th leads to the i-th address of
// the backends, and the first is the door. It has asked each backend once when it returns.
func newBalancer(backends []backend, addresses ...string) (*Balancer, error) {
	_, door, err := net.SplitHostPort(addresses[0])
	if err != nil {
		return nil, fmt.Errorf("listening for the balancer: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	b := &Balancer{
		URL:      "https://localhost:" + door,
		backends: backends, stop: stop, open: map[io.Closer]bool{},
		ready: make([]bool, len(backends)), leaving: make([]bool, len(backends)), silent: make([]int, len(backends)),
	}
	for which, address := range addresses {
		listener, err := net.Listen("tcp4", address)
		if err != nil {
			b.close()
			return nil, fmt.Errorf("listening for the balancer: %w", err)
		}
		b.keep(listener)
		b.running.Go(func() { b.accept(ctx, listener, which) })
	}
	b.probe(ctx)
	b.running.Go(func() { b.watch(ctx) })
	return b, nil
}

// close ends it and every connection through it. It may be called on nil and
// more than once.
func (b *Balancer) close() {
	if b == nil {
		return
	}
	b.stop()
	b.mu.Lock()
	for c := range b.open {
		_ = c.Close()
	}
	b.open = nil
	b.mu.Unlock()
	b.running.Wait()
}

func (b *Balancer) watch(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			b.probe(ctx)
		}
	}
}

// probe asks every backend at once, and believes all of them together: one that
// comes is in before one that goes is out.
func (b *Balancer) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	answers := make([]error, len(b.backends))
	var asked sync.WaitGroup
	for i, backend := range b.backends {
		asked.Go(func() { answers[i] = backend.ready(ctx) })
	}
	asked.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, err := range answers {
		if !errors.Is(err, context.DeadlineExceeded) {
			b.ready[i], b.silent[i] = err == nil && !b.leaving[i], 0
		} else if b.silent[i]++; b.silent[i] >= silences {
			b.ready[i] = false
		}
	}
}

// leave has the balancer open no new connection to a replica that is told to end,
// though one that drains may answer that it's ready, or has just done so.
func (r *route) leave() {
	if r == nil {
		return
	}
	r.balancer.mu.Lock()
	defer r.balancer.mu.Unlock()
	r.balancer.ready[r.which], r.balancer.leaving[r.which] = false, true
}

// join has the balancer believe the replica again, which has come back.
func (r *route) join() {
	if r == nil {
		return
	}
	r.balancer.mu.Lock()
	defer r.balancer.mu.Unlock()
	r.balancer.leaving[r.which] = false
}

// await waits until the balancer leads to the replica, as a rolling update does
// before it ends the next one.
func (r *route) await(ctx context.Context) error {
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for !r.balancer.isReady(r.which) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the balancer to lead to the replica: %w", ctx.Err())
		case <-time.After(readyEvery):
		}
	}
	return nil
}

func (b *Balancer) isReady(which int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready[which]
}

// pick returns the address of the next ready backend.
func (b *Balancer) pick(which int) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.backends {
		i := b.turn % len(b.backends)
		b.turn++
		if b.ready[i] {
			return b.backends[i].addresses[which], nil
		}
	}
	return "", errors.New("no replica is ready")
}

func (b *Balancer) accept(ctx context.Context, listener net.Listener, which int) {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as too many open files
			time.Sleep(probeEvery)
			continue
		}
		b.running.Go(func() { b.pass(ctx, conn, which) })
	}
}

// pass connects a client to a backend until either ends.
func (b *Balancer) pass(ctx context.Context, client net.Conn, which int) {
	defer client.Close()
	address, err := b.pick(which)
	if err != nil {
		return
	}
	server, err := new(net.Dialer).DialContext(ctx, "tcp4", address)
	if err != nil {
		return
	}
	defer server.Close()
	if !b.keep(client) || !b.keep(server) {
		return
	}
	defer b.forget(client, server)
	var copying sync.WaitGroup
	copying.Go(func() { forward(server, client) })
	copying.Go(func() { forward(client, server) })
	copying.Wait()
}

// forward copies until from has said all, and passes that on too.
func forward(to, from net.Conn) {
	_, err := io.Copy(to, from)
	tcp, ok := to.(*net.TCPConn)
	if err != nil || !ok {
		_, _ = to.Close(), from.Close()
		return
	}
	_ = tcp.CloseWrite()
}

// keep notes what close has to close. It is false once that was called.
func (b *Balancer) keep(c io.Closer) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		_ = c.Close()
		return false
	}
	b.open[c] = true
	return true
}

func (b *Balancer) forget(closers ...io.Closer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range closers {
		delete(b.open, c)
	}
}
