package world

import (
	"context"
	"fmt"
)

// Hub is the hub cluster. Its API server aggregates APIs and proves itself to
// them by a front-proxy certificate.
type Hub struct {
	*ControlPlane
	// Server is cellcast-hub once Deploy has started it: the first of Servers.
	Server *Server
	// Servers are its replicas.
	Servers []*Server
	// Balancer stands for their Service; nil where there is one replica. Callers
	// come by Door, which is right for both.
	Balancer *Balancer
	// Etcd is its store.
	Etcd *Process
	// ExternalURL is where the cells reach the discovery mirror and pods the
	// drop-box, on the link to the pods where a cell has a node: the external
	// listener of Server, or of whichever of Servers the balancer takes.
	ExternalURL string
	// ServerCABundle is the PEM certificate that cellcast-hub's two listeners
	// are checked against.
	ServerCABundle []byte

	serverCA     *authority
	externalPort int
	doorPort     int // of Balancer
}

func newHub(w *World, issuer, etcdURL string) (*Hub, error) {
	plane, err := newControlPlane(w, HubName, issuer, etcdURL)
	if err != nil {
		return nil, err
	}
	// The name is for those who look at the URL: on loopback it's localhost.
	name := w.outside
	if name == loopback {
		name = "localhost"
	}
	serverCA, err := newAuthority("cellcast-hub")
	if err != nil {
		return nil, err
	}
	external, err := w.ports.take()
	if err != nil {
		return nil, err
	}
	frontProxy, err := plane.frontProxyFlags()
	if err != nil {
		return nil, err
	}
	plane.APIServer.args = append(plane.APIServer.args, frontProxy...)
	return &Hub{
		ControlPlane:   plane,
		ExternalURL:    fmt.Sprintf("https://%s:%d", name, external),
		ServerCABundle: serverCA.pem,
		serverCA:       serverCA,
		externalPort:   external,
	}, nil
}

func (h *Hub) start(ctx context.Context) error { return h.APIServer.Start(ctx) }

// frontProxyFlags let the API server forward a request together with who sent
// it, under a certificate of an authority that signs nothing else.
func (c *ControlPlane) frontProxyFlags() ([]string, error) {
	ca, err := newAuthority("front-proxy")
	if err != nil {
		return nil, err
	}
	pair, err := ca.client("front-proxy-client")
	if err != nil {
		return nil, err
	}
	caFile, err := writeFile(c.dir, "front-proxy-ca.crt", ca.pem)
	if err != nil {
		return nil, err
	}
	cert, key, err := pair.write(c.dir, "front-proxy-client")
	if err != nil {
		return nil, err
	}
	return []string{
		"--proxy-client-cert-file=" + cert,
		"--proxy-client-key-file=" + key,
		"--requestheader-client-ca-file=" + caFile,
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}, nil
}
