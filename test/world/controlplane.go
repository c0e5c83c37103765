package world

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// ControlPlane is a kube-apiserver of the world. It has its own certificate
// authority and ServiceAccount keys, real RBAC, and an audit log at Metadata.
type ControlPlane struct {
	// Name is the cluster's name.
	Name string
	// URL is where its API server listens.
	URL string
	// CABundle is the PEM certificate that its API server is checked against.
	CABundle []byte
	// Issuer is the issuer of its ServiceAccount tokens.
	Issuer string
	// Admin may do everything.
	Admin User
	// APIServer is its process.
	APIServer *Process
	// AuditLog is the path of its audit log.
	AuditLog string

	world *World
	dir   string
	ca    *authority
}

// newControlPlane makes a control plane, which isn't started yet; the flags
// are added to those that every one has.
func newControlPlane(w *World, name, issuer, etcdURL string) (*ControlPlane, error) {
	ca, err := newAuthority("kubernetes " + name)
	if err != nil {
		return nil, err
	}
	port, err := w.ports.take()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{
		Name:     name,
		URL:      fmt.Sprintf("https://127.0.0.1:%d", port),
		CABundle: ca.pem,
		Issuer:   issuer,
		AuditLog: filepath.Join(w.Dir, "logs", name+"-audit.log"),
		world:    w,
		dir:      filepath.Join(w.Dir, name),
		ca:       ca,
	}
	if c.Admin, err = c.User("admin", "system:masters"); err != nil {
		return nil, err
	}
	args, err := c.apiServerFlags(port, etcdURL)
	if err != nil {
		return nil, err
	}
	c.APIServer = w.table.add(command{
		name:  name + "-kube-apiserver",
		path:  filepath.Join(w.assets.kube, "kube-apiserver"),
		args:  args,
		ready: c.ready,
	})
	return c, nil
}

// ready returns nil when the API server is, and has made the namespaces that
// everything else goes into.
func (c *ControlPlane) ready(ctx context.Context) error {
	for _, path := range []string{"/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system"} {
		if err := c.serves(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// serves returns nil when the API server answers 200 to its administrator.
func (c *ControlPlane) serves(ctx context.Context, path string) error {
	client, err := rest.HTTPClientFor(c.Admin.config)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", c.Name, err)
	}
	return serves(ctx, client, c.URL+path)
}

// apiServerFlags writes the files that the API server starts from and returns
// its flags. Nothing is tuned beyond them: leaving out the watch cache,
// profiling or beta APIs was measured to save neither start-up time nor
// memory worth having.
func (c *ControlPlane) apiServerFlags(port int, etcdURL string) ([]string, error) {
	serving, err := c.ca.serving("kubernetes", "kubernetes.default.svc")
	if err != nil {
		return nil, err
	}
	cert, key, err := serving.write(c.dir, "kube-apiserver")
	if err != nil {
		return nil, err
	}
	clientCA, err := writeFile(c.dir, "ca.crt", c.CABundle)
	if err != nil {
		return nil, err
	}
	signing, err := signingKey()
	if err != nil {
		return nil, err
	}
	serviceAccounts, err := writeFile(c.dir, serviceAccountsKey, signing)
	if err != nil {
		return nil, err
	}
	audit, err := writeFile(c.dir, "audit-policy.yaml", []byte(auditPolicy))
	if err != nil {
		return nil, err
	}
	return []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + cert,
		"--tls-private-key-file=" + key,
		"--client-ca-file=" + clientCA,
		"--etcd-servers=" + etcdURL,
		"--etcd-prefix=/" + c.Name,
		"--authorization-mode=RBAC",
		"--service-account-issuer=" + c.Issuer,
		"--service-account-signing-key-file=" + serviceAccounts,
		"--service-account-key-file=" + serviceAccounts,
		"--service-account-extend-token-expiration=false",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--endpoint-reconciler-type=none",
		"--audit-policy-file=" + audit,
		"--audit-log-path=" + c.AuditLog,
	}, nil
}

// serviceAccountsKey is the file with the key that ServiceAccount tokens are
// signed with.
const serviceAccountsKey = "service-accounts.key"

// auditPolicy records who did what and never what was in it, so that no token
// gets into a log; but of cellcast's own API everything, in which no token is
// that isn't sealed. The API server's talk with itself is left out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver"]
- level: RequestResponse
  resources: [{group: cellcast.io}]
- level: Metadata
`
