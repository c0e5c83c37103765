package world

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/pkg/cli/registration"
)

// ReporterAudience is the audience of the tokens by which agents report.
const ReporterAudience = "cellcast.io/reports"

// Access is what a cell lets the hub do.
type Access struct {
	// Mint are the ServiceAccounts that the hub may mint for, each written as
	// namespace/name, and made where it doesn't exist.
	Mint []string
	// Revocable are the namespaces whose credentials are revocable, made where
	// they don't exist. The agent is told of them by RevocableFlag.
	Revocable []string
	// RevocableQuota is how many Secrets each of them may hold; zero for the
	// default.
	RevocableQuota int64
}

// RevocableFlag is the flag by which an agent is told where it ends credentials.
func RevocableFlag(namespaces []string) string {
	return "--revocable-namespaces=" + strings.Join(namespaces, ",")
}

// Install is InstallAccess for a cell without revocable credentials.
func (c *Cell) Install(ctx context.Context, mint ...string) error {
	return c.InstallAccess(ctx, Access{Mint: mint})
}

// InstallAccess puts onto the cell what `cellcast register cell` prints for it:
// the agent's ServiceAccount and RBAC, the hub's access, and the bounds that hold
// even against the hub.
func (c *Cell) InstallAccess(ctx context.Context, access Access) error {
	cell := registration.Cell{
		Name: c.Name, Endpoint: c.URL, CABundle: c.CABundle, Labels: c.Labels, Issuer: c.Issuer, Hub: c.joins(),
		Revocable: access.Revocable, RevocableQuota: access.RevocableQuota,
	}
	for _, namespace := range access.Revocable {
		// Each namespace has this ServiceAccount sooner or later.
		if err := c.EnsureServiceAccount(ctx, namespace, "default"); err != nil {
			return err
		}
	}
	for _, account := range access.Mint {
		namespace, name, _ := strings.Cut(account, "/")
		if err := c.EnsureServiceAccount(ctx, namespace, name); err != nil {
			return err
		}
		cell.Mint = append(cell.Mint, types.NamespacedName{Namespace: namespace, Name: name})
	}
	joined, err := registration.New(cell)
	if err != nil {
		return fmt.Errorf("registering %s: %w", c.Name, err)
	}
	manifests, err := registration.YAML(joined.OnCell()...)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, manifests); err != nil {
		return err
	}
	for _, namespace := range access.Revocable {
		if err := c.countSecrets(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

// StartAgent starts the cell's cellcast-agent, which reports to the server.
// The further flags come last, so that they win. Install comes before.
func (c *Cell) StartAgent(ctx context.Context, s *Server, args ...string) error {
	if c.Agent != nil {
		return errors.New("the cell has an agent already")
	}
	path := filepath.Join(c.world.assets.programs, "cellcast-agent")
	if !executable(path) {
		return fmt.Errorf("%s isn't built: run make build", path)
	}
	identity, err := c.ServiceAccount(ctx, Namespace, AgentServiceAccount)
	if err != nil {
		return err
	}
	token, err := c.Token(ctx, Namespace, AgentServiceAccount, tokenLife, ReporterAudience)
	if err != nil {
		return err
	}
	tokenFile, err := writeFile(c.dir, "report-token", []byte(token))
	if err != nil {
		return err
	}
	c.Agent = c.world.table.add(command{
		name:     c.Name + "-cellcast-agent",
		path:     path,
		graceful: true,
		args: append([]string{
			"--cell=" + c.Name,
			"--kubeconfig=" + identity.Kubeconfig,
			"--hub=" + s.URL,
			"--hub-ca=" + s.CAFile,
			"--token-file=" + tokenFile,
			"--leader-elect=false",    // there is one
			"--health-bind-address=0", // every cell's would be the same
		}, args...),
	})
	return c.Agent.Start(ctx)
}
