package world

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// Server is a running cellcast-hub, outside the cluster but with the identity
// and the permissions that it has inside.
type Server struct {
	*Process
	// URL is its direct door, for pipelines and agents.
	URL string
	// CAFile holds the certificate that it is checked against.
	CAFile string

	port  int
	route *route // nil where no balancer leads to it
}

// ServerOptions say how a cellcast-hub is started.
type ServerOptions struct {
	// Name is the process's name; empty means cellcast-hub.
	Name string
	// PipelineAuthentication is the path of the AuthenticationConfiguration of
	// the CI issuers; empty means that no pipeline can authenticate.
	PipelineAuthentication string
	// Args are further flags. They come last, so that they win.
	Args []string
	// Replicas is how many to start, one by default. Each is the others' peer. They
	// drain for a second.
	Replicas int
	// Stdout takes the audit trail; nil means the log.
	Stdout *os.File
}

// Deploy installs cellcast on the hub, starts cellcast-hub and registers it with
// the API server. It returns once the aggregated API works.
func (h *Hub) Deploy(ctx context.Context, o ServerOptions) error {
	if h.Server != nil {
		return errors.New("the hub has a cellcast-hub already: use AddReplica for another")
	}
	if err := h.Install(ctx); err != nil {
		return fmt.Errorf("installing cellcast on the hub: %w", err)
	}
	h.world.standIn.close()
	if o.Replicas > 1 {
		if err := h.deployReplicas(ctx, o); err != nil {
			return err
		}
	} else {
		if h.world.outside != loopback {
			o.Args = append([]string{"--external-bind-address=" + h.world.outside}, o.Args...)
		}
		server, err := h.startServer(ctx, o, h.externalPort)
		if err != nil {
			return err
		}
		h.Server, h.Servers = server, []*Server{server}
	}
	if err := h.register(ctx, h.Door()); err != nil {
		return fmt.Errorf("registering cellcast-hub: %w", err)
	}
	return nil
}

// AddReplica starts a further cellcast-hub with ports of its own, which has no
// peers and is behind no balancer.
func (h *Hub) AddReplica(ctx context.Context, o ServerOptions) (*Server, error) {
	if o.Name == "" {
		return nil, errors.New("a replica needs a name: set ServerOptions.Name")
	}
	external, err := h.world.ports.take()
	if err != nil {
		return nil, err
	}
	return h.startServer(ctx, o, external)
}

func (h *Hub) startServer(ctx context.Context, o ServerOptions, external int) (*Server, error) {
	s, err := h.newServer(ctx, o, external)
	if err != nil {
		return nil, err
	}
	return s, s.Start(ctx)
}

// newServer makes a cellcast-hub, which isn't started yet.
func (h *Hub) newServer(ctx context.Context, o ServerOptions, external int) (*Server, error) {
	path := filepath.Join(h.world.assets.programs, "cellcast-hub")
	if !executable(path) {
		return nil, fmt.Errorf("%s isn't built: run make build", path)
	}
	if o.Name == "" {
		o.Name = "cellcast-hub"
	}
	identity, err := h.ServiceAccount(ctx, Namespace, HubServiceAccount)
	if err != nil {
		return nil, err
	}
	pair, err := h.serverCA.serving(HubServiceAccount+"."+Namespace+".svc", h.world.outside)
	if err != nil {
		return nil, err
	}
	cert, key, err := pair.write(h.dir, o.Name)
	if err != nil {
		return nil, err
	}
	caFile, err := writeFile(h.dir, "cellcast-hub-ca.crt", h.ServerCABundle)
	if err != nil {
		return nil, err
	}
	port, err := h.world.ports.take()
	if err != nil {
		return nil, err
	}
	drain := "0s" // nobody routes to it but who is told to
	if o.Replicas > 1 {
		drain = "1s" // plenty: the balancer looks each fifth of a second
	}
	s := &Server{URL: fmt.Sprintf("https://localhost:%d", port), CAFile: caFile, port: port}
	args := []string{
		"--drain-delay=" + drain,
		"--kubeconfig=" + identity.Kubeconfig,
		"--authentication-kubeconfig=" + identity.Kubeconfig,
		"--authorization-kubeconfig=" + identity.Kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + cert,
		"--tls-private-key-file=" + key,
		"--external-port=" + strconv.Itoa(external),
		"--external-url=" + h.ExternalURL,
		"--namespace=" + Namespace,
		"--service-account=" + HubServiceAccount,
	}
	if o.PipelineAuthentication != "" {
		args = append(args, "--pipeline-authentication-config="+o.PipelineAuthentication)
	}
	s.Process = h.world.table.add(command{
		name:     o.Name,
		path:     path,
		args:     append(args, o.Args...),
		stdout:   o.Stdout,
		graceful: true,
		ready:    s.answers(h.serverCA.cert),
	})
	return s, nil
}

// answers asks the server itself whether it is ready, without a credential.
func (s *Server) answers(ca *x509.Certificate) func(context.Context) error {
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}}
	return func(ctx context.Context) error { return serves(ctx, client, s.URL+"/readyz") }
}
