package world

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/registration"
)

// Cell is a cell of the fleet. It trusts the hub's ServiceAccount from the
// start: before cellcast-hub runs, a stand-in serves the hub's keys.
type Cell struct {
	*ControlPlane
	// Labels are the labels of its Cluster.
	Labels map[string]string
	// Audience is what the hub's tokens for this cell are issued for.
	Audience string
	// Controllers is its kube-controller-manager, or nil.
	Controllers *Process
	// Node is its node, or nil.
	Node *Node
	// Agent is its cellcast-agent once StartAgent has started it.
	Agent *Process
}

func newCell(w *World, o CellOptions) (*Cell, error) {
	plane, err := newControlPlane(w, o.Name, o.Issuer, w.EtcdURL)
	if err != nil {
		return nil, err
	}
	c := &Cell{
		ControlPlane: plane,
		Labels:       o.Labels,
		Audience:     "cellcast:cell:" + o.Name,
	}
	trust, err := yaml.Marshal(c.joins().Authentication(c.Audience))
	if err != nil {
		return nil, fmt.Errorf("rendering the cell's trust in the hub: %w", err)
	}
	file, err := writeFile(c.dir, "authentication.yaml", trust)
	if err != nil {
		return nil, err
	}
	c.APIServer.args = append(c.APIServer.args, "--authentication-config="+file)
	if o.Controllers {
		if c.Controllers, err = newControllers(c); err != nil {
			return nil, err
		}
	}
	if e := w.enclaves[o.Name]; e != nil {
		flags, err := c.nodeFlags()
		if err != nil {
			return nil, err
		}
		c.APIServer.args = append(c.APIServer.args, flags...)
		if c.Node, err = newNode(c, e); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// joins is the hub as the cell has to know it.
func (c *Cell) joins() registration.Hub {
	return registration.Hub{
		Issuer:    c.world.Hub.Issuer,
		MirrorURL: c.world.Hub.ExternalURL,
		MirrorCA:  c.world.Hub.ServerCABundle,
	}
}

func (c *Cell) start(ctx context.Context) error {
	first, starting := errgroup.WithContext(ctx)
	first.Go(func() error { return c.APIServer.Start(starting) })
	if c.Node != nil {
		first.Go(func() error { return c.Node.startRuntime(starting) })
	}
	if err := first.Wait(); err != nil {
		return err
	}
	then, starting := errgroup.WithContext(ctx)
	if c.Controllers != nil {
		then.Go(func() error { return c.Controllers.Start(starting) })
	}
	if c.Node != nil {
		then.Go(func() error { return c.Node.Scheduler.Start(starting) })
		then.Go(func() error { return c.Node.Kubelet.Start(starting) })
	}
	return then.Wait()
}

// Cluster returns the row that registers the cell at the hub, in state LIVE
// and with cellcast-agent as its reporter. Nothing is created.
func (c *Cell) Cluster() *registryv1alpha1.Cluster {
	return &registryv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Labels: c.Labels},
		Spec: registryv1alpha1.ClusterSpec{
			Endpoint: c.URL,
			CABundle: c.CABundle,
			State:    registryv1alpha1.StateLive,
			Trust:    registryv1alpha1.ClusterTrust{Audience: c.Audience},
			Reporter: &registryv1alpha1.ClusterReporter{
				Issuer:  c.Issuer,
				Subject: "system:serviceaccount:" + Namespace + ":" + AgentServiceAccount,
			},
		},
	}
}

// newControllers makes the cell's kube-controller-manager, which isn't started
// yet. It serves nothing; that it works shows in what it makes.
func newControllers(c *Cell) (*Process, error) {
	path := filepath.Join(c.world.assets.kube, "kube-controller-manager")
	if !executable(path) {
		return nil, errors.New("the assets have no kube-controller-manager: run make kube and unset KUBEBUILDER_ASSETS")
	}
	return c.world.table.add(command{
		name: c.Name + "-kube-controller-manager",
		path: path,
		args: []string{
			"--kubeconfig=" + c.Admin.Kubeconfig,
			"--controllers=serviceaccount-controller,serviceaccount-token-controller,root-ca-certificate-publisher-controller," +
				"namespace-controller,clusterrole-aggregation-controller,deployment-controller,replicaset-controller,garbage-collector-controller",
			"--root-ca-file=" + filepath.Join(c.dir, "ca.crt"),
			"--service-account-private-key-file=" + filepath.Join(c.dir, serviceAccountsKey),
			"--leader-elect=false",
			"--secure-port=0",
		},
		ready: func(ctx context.Context) error {
			return c.serves(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
		},
	}), nil
}
