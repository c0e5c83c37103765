// Package world runs a hub cluster and its cells as processes on loopback: one
// etcd, a kube-apiserver each, and the programs of cellcast on top. Tests and
// the demo use it alike, so it knows nothing of package testing.
//
// A cell can have a real node, on which pods run. Everything else listens on
// loopback; what pods need to reach listens on a link that the world made itself.
//
// Nothing outlives the world. Whatever Start began is ended when Start fails,
// when its context ends, by Stop, and on Linux by the kernel when the process
// that called Start dies. Only a detached world stays, and StopDetached ends
// exactly the processes that it began.
//
// The control planes trust one another as they do in a real fleet. Each has
// its own certificate authority and its own ServiceAccount keys. Cells share
// one issuer string, as clusters with stock settings do, and trust the hub's
// ServiceAccount by its OIDC discovery mirror; no cell holds a credential of
// the hub.
package world

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// World is a hub and its cells, running.
type World struct {
	// Dir holds the state; the logs are in Dir/logs.
	Dir string
	// Kubectl is the path of kubectl; empty where the assets have none.
	Kubectl string
	// Etcd is the store of every control plane, each under a prefix of its own;
	// of the hub's too, unless it has one of its own.
	Etcd *Process
	// EtcdURL is its client URL.
	EtcdURL string
	// Hub is the hub cluster.
	Hub *Hub
	// Cells are the cells in the order of the options.
	Cells []*Cell

	assets assets
	table  *table
	ports  ports
	// enclaves are the cells' nodes' by the cells' names.
	enclaves map[string]*enclave
	// outside is where cellcast-hub listens for cells and pods.
	outside string
	standIn *standIn
	forget  func() bool // unties the world from its context
	once    sync.Once
	ended   error
}

// Start brings up the control planes that the options ask for and returns when
// all of them are ready. A start that fails, or whose context ends, leaves no
// process. Unless the options say Detach, the world also ends with ctx. The
// error is ErrNoAssets where no control plane is built.
func Start(ctx context.Context, o Options) (*World, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	w := &World{
		Dir:     o.Dir,
		Kubectl: o.assets.kubectl(),
		assets:  o.assets,
		table:   newTable(o.Dir, o.Detach),
	}
	if err := w.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the world in %s: %w", o.Dir, err), w.Stop())
	}
	if !o.Detach {
		w.forget = context.AfterFunc(ctx, func() { _ = w.end() })
	}
	return w, nil
}

func (w *World) start(ctx context.Context, o Options) error {
	var err error
	if w.Etcd, w.EtcdURL, err = newEtcd(w, "etcd"); err != nil {
		return err
	}
	stores := []*Process{w.Etcd}
	hubEtcd, hubEtcdURL := w.Etcd, w.EtcdURL
	if o.HubEtcd {
		if hubEtcd, hubEtcdURL, err = newEtcd(w, "etcd-hub"); err != nil {
			return err
		}
		stores = append(stores, hubEtcd)
	}
	if err := w.startEnclaves(ctx, o.Cells); err != nil {
		return err
	}
	if w.Hub, err = newHub(w, o.HubIssuer, hubEtcdURL); err != nil {
		return err
	}
	w.Hub.Etcd = hubEtcd
	for _, c := range o.Cells {
		cell, err := newCell(w, c)
		if err != nil {
			return err
		}
		w.Cells = append(w.Cells, cell)
	}
	if w.standIn, err = startStandIn(w.Hub); err != nil {
		return err
	}
	for _, store := range stores {
		if err := store.Start(ctx); err != nil {
			return err
		}
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.Hub.start(ctx) })
	for _, cell := range w.Cells {
		group.Go(func() error { return cell.start(ctx) })
	}
	return group.Wait()
}

// startEnclaves makes the places for nodes. They come first, because the hub
// listens on the link to one, and cells are told its address when they are made.
// The pods of the others reach that as well, by their own link.
func (w *World) startEnclaves(ctx context.Context, cells []CellOptions) error {
	w.outside = loopback
	w.enclaves = map[string]*enclave{}
	cells = slices.DeleteFunc(slices.Clone(cells), func(c CellOptions) bool { return !c.Node })
	if len(cells) == 0 {
		return nil
	}
	if err := sweep(ctx); err != nil { // what a world left that was killed
		return err
	}
	for _, c := range cells {
		e, err := newEnclave(ctx, w, c.Name+"-node")
		if err != nil {
			return err
		}
		if len(w.enclaves) == 0 {
			w.outside = e.address.String()
		}
		w.enclaves[c.Name] = e
	}
	return nil
}

// Cell returns the cell of that name, or nil.
func (w *World) Cell(name string) *Cell {
	for _, c := range w.Cells {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Stop ends every process of the world and returns when all have ended. It may
// be called more than once, and from several goroutines. The state stays in
// Dir.
func (w *World) Stop() error {
	if w.forget != nil {
		w.forget()
	}
	return w.end()
}

// end does it once. Who comes meanwhile waits and gets the same error.
func (w *World) end() error {
	w.once.Do(func() {
		w.standIn.close()
		w.ended = w.table.stop()
		if len(w.enclaves) > 0 {
			w.ended = errors.Join(w.ended, sweep(context.Background()))
		}
		if w.Hub != nil {
			w.Hub.Balancer.close()
		}
		w.ports.release()
	})
	return w.ended
}

// logFile is where the process of that name writes.
func logFile(dir, process string) string {
	return filepath.Join(dir, "logs", process+".log")
}
