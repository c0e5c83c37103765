package world

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Names and strings that a world has unless the options say otherwise.
const (
	// HubName is the hub's name among the control planes.
	HubName = "hub"
	// HubIssuer is the issuer of the hub's ServiceAccount tokens. It differs
	// from the cells': a cluster refuses a foreign issuer with its own name.
	HubIssuer = "https://hub.cellcast.test"
	// CellIssuer is the issuer that every cell has, on purpose the same.
	CellIssuer = "https://kubernetes.default.svc.cluster.local"
)

// Options say what a world is made of.
type Options struct {
	// Dir is the folder for state and logs. It is made when it doesn't exist;
	// what an earlier world left in it is cleared away.
	Dir string
	// HubIssuer is the hub's first --service-account-issuer; empty means
	// the constant HubIssuer.
	HubIssuer string
	// Cells are the cells to start; none means a hub alone.
	Cells []CellOptions
	// Programs is the folder with cellcast-hub and cellcast-agent; empty means
	// the repository's bin.
	Programs string
	// HubEtcd gives the hub a store of its own, World.Hub.Etcd, so that it can
	// fail alone.
	HubEtcd bool
	// Detach lets the world outlive the process that starts it, until
	// StopDetached.
	Detach bool

	assets assets
}

// CellOptions say what a cell is like.
type CellOptions struct {
	// Name is the cell's name, a DNS label other than "hub".
	Name string
	// Labels are the labels of its Cluster.
	Labels map[string]string
	// Issuer is the issuer of its ServiceAccount tokens; empty means the
	// constant CellIssuer.
	Issuer string
	// Controllers runs a kube-controller-manager beside it, with those controllers
	// alone that a Deployment, a namespace, a ServiceAccount's long-lived token and
	// the roles admin, edit and view need. There is no scheduler: pods that a
	// ReplicaSet makes stay pending.
	Controllers bool
	// Node gives the cell a real node, with a scheduler and Controllers: pods
	// run. Where HaveNode returns an error, so does Start.
	Node bool
}

// complete returns the options with defaults filled in, and with the programs
// that they need found.
func (o Options) complete() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("a world needs a folder: set Options.Dir")
	}
	taken := map[string]bool{HubName: true}
	cells := make([]CellOptions, len(o.Cells))
	for i, c := range o.Cells {
		if problems := validation.IsDNS1123Label(c.Name); len(problems) > 0 {
			return o, fmt.Errorf("cell %q: %s", c.Name, problems[0])
		}
		if taken[c.Name] {
			return o, fmt.Errorf("cell %q: the name is taken", c.Name)
		}
		taken[c.Name] = true
		if c.Issuer == "" {
			c.Issuer = CellIssuer
		}
		c.Controllers = c.Controllers || c.Node
		cells[i] = c
	}
	o.Cells = cells
	if o.HubIssuer == "" {
		o.HubIssuer = HubIssuer
	}

	var err error
	if o.assets, err = findAssets(o.Programs); err != nil {
		return o, err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, fmt.Errorf("finding the world's folder: %w", err)
	}
	if slices.ContainsFunc(cells, func(c CellOptions) bool { return c.Node }) {
		if err := errors.Join(o.assets.haveNode(), seen(o.Dir)); err != nil {
			return o, err
		}
	}
	if err := vacate(o.Dir); err != nil {
		return o, err
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "logs"), 0o700); err != nil {
		return o, fmt.Errorf("making the world's folder: %w", err)
	}
	return o, nil
}
