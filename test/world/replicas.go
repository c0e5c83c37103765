package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Door is where the hub is reached: its one cellcast-hub, or the balancer before
// its replicas. It's no process of its own then.
func (h *Hub) Door() *Server {
	if h.Balancer == nil {
		return h.Server
	}
	return &Server{URL: h.Balancer.URL, CAFile: h.Server.CAFile, port: h.doorPort}
}

// deployReplicas starts the replicas, each with the others as its peers, and a
// balancer in the place of the Service.
func (h *Hub) deployReplicas(ctx context.Context, o ServerOptions) error {
	if h.world.table.detach {
		return errors.New("a detached world can't have replicas: their balancer ends with this process")
	}
	name := o.Name
	if name == "" {
		name = "cellcast-hub"
	}
	var externals []string
	for i := range o.Replicas {
		external, err := h.world.ports.take()
		if err != nil {
			return err
		}
		if o.Name = name; i > 0 {
			o.Name = fmt.Sprintf("%s-%d", name, i)
		}
		server, err := h.newServer(ctx, o, external)
		if err != nil {
			return err
		}
		h.Servers = append(h.Servers, server)
		externals = append(externals, "127.0.0.1:"+strconv.Itoa(external))
	}
	h.Server = h.Servers[0]
	group, starting := errgroup.WithContext(ctx)
	for _, server := range h.Servers {
		// Ahead of the test's own flags, which win.
		server.args = append([]string{"--peers=" + h.peersOf(server), "--peer-ca-file=" + server.CAFile}, server.args...)
		group.Go(func() error { return server.Start(starting) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return h.balance(externals)
}

func (h *Hub) peersOf(server *Server) string {
	var others []string
	for _, other := range h.Servers {
		if other != server {
			others = append(others, other.URL)
		}
	}
	return strings.Join(others, ",")
}

// balance puts the balancer before both listeners of the replicas.
func (h *Hub) balance(externals []string) (err error) {
	if h.doorPort, err = h.world.ports.take(); err != nil {
		return err
	}
	var backends []backend
	for i, server := range h.Servers {
		backends = append(backends, backend{
			ready:     server.ready,
			addresses: []string{"127.0.0.1:" + strconv.Itoa(server.port), externals[i]},
		})
	}
	h.Balancer, err = newBalancer(backends,
		net.JoinHostPort(loopback, strconv.Itoa(h.doorPort)), net.JoinHostPort(h.world.outside, strconv.Itoa(h.externalPort)))
	if err != nil {
		return err
	}
	for i, server := range h.Servers {
		server.route = &route{h.Balancer, i}
	}
	return nil
}

// Start is the process's. Callers are led to the server soon after it.
func (s *Server) Start(ctx context.Context) error {
	if err := s.Process.Start(ctx); err != nil {
		return err
	}
	s.route.join()
	return nil
}

// Terminate ends the server as a rolling update does: it is told to, and drains
// for as long as its flags say. It is killed when ctx ends first. An exit status
// other than zero is an error.
func (s *Server) Terminate(ctx context.Context) error {
	r := s.running()
	if r == nil {
		return nil
	}
	s.route.leave()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("terminating %s: %w", s.name, err)
	}
	select {
	case <-r.ended:
		if r.err != nil {
			return fmt.Errorf("terminating %s: %w%s", s.name, r.err, tail(s.LogFile()))
		}
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("terminating %s: %w", s.name, ctx.Err()), s.Kill())
	}
}

// Restart terminates the server and starts it again. It returns when callers are
// led to it.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Terminate(ctx); err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	return s.route.await(ctx)
}
