// Package fleet is a world with cellcast on it: a hub, cells that report, a CI
// issuer whose pipelines come in, and clients of every kind. Integration tests
// and benchmarks start from here.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/issuer"
	"cellcast.io/cellcast/test/world"
)

// Audience is what the pipelines' tokens are issued for.
const Audience = "cellcast.io/hub"

// Options say what the fleet is like.
type Options struct {
	// Dir is the folder for state and logs.
	Dir string
	// Cells are the cells; each gets a node of 16 cores and an agent.
	Cells []world.CellOptions
	// Brought are clusters that the fleet doesn't manage: nothing of cellcast's is
	// on them, and no Cluster of the hub names them.
	Brought []world.CellOptions
	// Replicas is the number of cellcast-hubs; 0 means one. HubEtcd gives the hub
	// a store of its own.
	Replicas int
	HubEtcd  bool
	// HubArgs are further flags of cellcast-hub, AgentArgs of every agent.
	HubArgs, AgentArgs []string
	// IngestCA has pods check the hub by the world's own certificates.
	IngestCA bool
	// Mint are the ServiceAccounts, as namespace/name, that each cell lets the
	// hub mint for: at least one.
	Mint []string
	// Revocable are the namespaces of each cell whose credentials can be
	// revoked; they hold nothing else. Agents end credentials there.
	Revocable []string
}

// Fleet is a hub, its cells and a CI issuer, running.
type Fleet struct {
	*world.World
	// CI signs the tokens of pipelines.
	CI *issuer.Issuer
	// Authentication is the file of the hub's --pipeline-authentication-config.
	Authentication string
	// Admin is the hub's administrator.
	Admin versioned.Interface
}

// Start starts a fleet and returns once each cell is trusted and has reported.
func Start(ctx context.Context, o Options) (_ *Fleet, err error) {
	f := &Fleet{}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Stop())
		}
	}()
	if f.World, err = world.Start(ctx, world.Options{Dir: o.Dir, Cells: slices.Concat(o.Cells, o.Brought), HubEtcd: o.HubEtcd}); err != nil {
		return f, err
	}
	if f.CI, err = issuer.Start(issuer.Options{}); err != nil {
		return f, err
	}
	f.Authentication = filepath.Join(f.Dir, "authentication.yaml")
	if err = f.Trust(f.CI); err != nil {
		return f, err
	}
	if o.IngestCA {
		file := filepath.Join(f.Dir, "ingest-ca.pem")
		if err = os.WriteFile(file, f.Hub.ServerCABundle, 0o600); err != nil {
			return f, err
		}
		o.HubArgs = append(o.HubArgs, "--ingest-ca-file="+file)
	}
	if err = f.Hub.Deploy(ctx, world.ServerOptions{
		PipelineAuthentication: f.Authentication, Replicas: o.Replicas, Args: o.HubArgs,
	}); err != nil {
		return f, err
	}
	if f.Admin, err = versioned.NewForConfig(f.Hub.Admin.Config()); err != nil {
		return f, err
	}
	for _, cell := range f.Cells[:len(o.Cells)] {
		if err = f.join(ctx, cell, o); err != nil {
			return f, fmt.Errorf("cell %s: %w", cell.Name, err)
		}
	}
	return f, f.Eventually(ctx, "every cell is trusted and has reported", f.settled)
}

// Stop ends everything that Start began.
func (f *Fleet) Stop() error {
	var errs []error
	if f.CI != nil {
		errs = append(errs, f.CI.Close())
	}
	if f.World != nil {
		errs = append(errs, f.World.Stop())
	}
	return errors.Join(errs...)
}

func (f *Fleet) join(ctx context.Context, cell *world.Cell, o Options) error {
	if err := cell.AddNode(ctx, "node-1", corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}); err != nil {
		return err
	}
	if err := cell.InstallAccess(ctx, world.Access{Mint: o.Mint, Revocable: o.Revocable}); err != nil {
		return err
	}
	if _, err := f.Admin.RegistryV1alpha1().Clusters().Create(ctx, cell.Cluster(), metav1.CreateOptions{}); err != nil {
		return err
	}
	return cell.StartAgent(ctx, f.Hub.Door(), append([]string{world.RevocableFlag(o.Revocable)}, o.AgentArgs...)...)
}

func (f *Fleet) settled(ctx context.Context) error {
	rows, err := f.Admin.RegistryV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, row := range rows.Items {
		for _, condition := range []string{registryv1alpha1.ConditionTrustEstablished, registryv1alpha1.ConditionReporterTrusted} {
			if !meta.IsStatusConditionTrue(row.Status.Conditions, condition) {
				return fmt.Errorf("%s isn't %s: %+v", row.Name, condition, meta.FindStatusCondition(row.Status.Conditions, condition))
			}
		}
	}
	cells, err := f.Admin.CellcastV1alpha1().Cells().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, cell := range cells.Items {
		if cell.Status.Capacity != cellcastv1alpha1.CapacityFresh {
			return fmt.Errorf("the capacity of %s is %s", cell.Name, cell.Status.Capacity)
		}
	}
	return nil
}

// Eventually waits for at most three minutes until check returns nil.
func (f *Fleet) Eventually(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w; last: %w", what, err, last)
	}
	return nil
}

// Trust makes these the issuers that the hub trusts. A running hub takes it up
// by itself.
func (f *Fleet) Trust(issuers ...*issuer.Issuer) error {
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n")
	for _, i := range issuers {
		fmt.Fprintf(&b, `- issuer:
    url: %s
    certificateAuthority: |
      %s
    audiences: [%s]
  claimMappings:
    username:
      expression: claims.sub
    groups:
      expression: "has(claims.groups) ? claims.groups : []"
    extra:
    - key: claims.cellcast.io/repository
      valueExpression: claims.repository
    - key: claims.cellcast.io/repository_id
      valueExpression: claims.repository_id
    - key: claims.cellcast.io/ref
      valueExpression: claims.ref
`, i.URL(), strings.ReplaceAll(strings.TrimSpace(string(i.CA())), "\n", "\n      "), Audience)
	}
	if err := os.WriteFile(f.Authentication+".new", []byte(b.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(f.Authentication+".new", f.Authentication)
}

// Token signs a token of a pipeline of this repository's main branch; changes
// are claims that differ.
func (f *Fleet) Token(repositoryID string, changes map[string]any) (string, error) {
	claims := issuer.CIClaims(issuer.Run{
		Repository: "acme/" + repositoryID, RepositoryID: repositoryID, Owner: "acme", OwnerID: "4711",
		Ref: "refs/heads/main", Audience: Audience,
	})
	for name, value := range changes {
		claims[name] = value
	}
	return f.CI.Sign(claims, issuer.Signing{})
}

// Direct is a client configuration of the direct door with this bearer token.
func (f *Fleet) Direct(token string) *rest.Config {
	return &rest.Config{
		Host:            f.Hub.Door().URL,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: f.Hub.Door().CAFile},
		WarningHandler:  rest.NoWarnings{},
		QPS:             -1,
	}
}

// Pipeline is a client of the direct door for a pipeline of this repository.
func (f *Fleet) Pipeline(repositoryID string) (versioned.Interface, error) {
	token, err := f.Token(repositoryID, nil)
	if err != nil {
		return nil, err
	}
	return versioned.NewForConfig(f.Direct(token))
}
