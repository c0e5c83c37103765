// Package registry is the rows as a request reads them: one immutable View of
// the cells and the compiled policies, made anew when a row changes. A request
// takes the View once, so it never sees half of a change; reading it takes no
// lock and calls nobody.
//
// A policy that doesn't compile is left out of every decision and is in the
// View with its errors. It can only get here past the webhook.
package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/placement"
	"cellcast.io/cellcast/pkg/policy"
)

// Registry keeps the View up to date.
type Registry struct {
	rows     cache.Cache
	compiler *policy.Compiler
	engine   *placement.Engine

	view    atomic.Pointer[View]
	first   chan struct{} // closed once the rows were read
	dirty   chan struct{} // capacity one: many changes make one new View
	rebuilt func(gone []string)
}

// New returns a Registry over the rows in the cache. It registers the cells
// with the engine, and calls rebuilt after each change with the names of the
// cells that went; Start runs it.
func New(rows cache.Cache, compiler *policy.Compiler, engine *placement.Engine, rebuilt func(gone []string)) *Registry {
	r := &Registry{rows: rows, compiler: compiler, engine: engine,
		first: make(chan struct{}), dirty: make(chan struct{}, 1), rebuilt: rebuilt}
	r.view.Store(newView(nil, nil))
	return r
}

// View returns the rows as they are now. It is empty before they were read, and
// an answer from an empty View would be wrong for good: wait for Read first.
func (r *Registry) View() *View { return r.view.Load() }

// Read is closed once the rows were read.
func (r *Registry) Read() <-chan struct{} { return r.first }

// NeedLeaderElection is false: every replica answers.
func (*Registry) NeedLeaderElection() bool { return false }

// Start makes the View whenever a row changes, until the context ends.
func (r *Registry) Start(ctx context.Context) error {
	for _, kind := range []client.Object{&registryv1alpha1.Cluster{}, &registryv1alpha1.PlacementPolicy{}} {
		informer, err := r.rows.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(r.marks()); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	if !r.rows.WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	r.mark()
	var once sync.Once
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.dirty:
			if err := r.rebuild(ctx); err != nil {
				return err
			}
			once.Do(func() { close(r.first) })
		}
	}
}

// marks notes every change but those of status and bookkeeping, which make no
// difference to a decision.
func (r *Registry) marks() toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { r.mark() },
		DeleteFunc: func(any) { r.mark() },
		UpdateFunc: func(before, after any) {
			old, now := before.(client.Object), after.(client.Object)
			if old.GetUID() != now.GetUID() || old.GetGeneration() != now.GetGeneration() ||
				!equality.Semantic.DeepEqual(old.GetLabels(), now.GetLabels()) {
				r.mark()
			}
		},
	}
}

func (r *Registry) mark() {
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

func (r *Registry) rebuild(ctx context.Context) error {
	var clusters registryv1alpha1.ClusterList
	var policies registryv1alpha1.PlacementPolicyList
	for _, list := range []client.ObjectList{&clusters, &policies} {
		if err := r.rows.List(ctx, list); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	cells := make([]*registryv1alpha1.Cluster, len(clusters.Items))
	for i := range clusters.Items {
		cells[i] = &clusters.Items[i]
	}
	slices.SortFunc(cells, func(a, b *registryv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })

	before := r.view.Load()
	entries := make([]*Entry, len(policies.Items))
	for i := range policies.Items {
		entries[i] = r.entry(&policies.Items[i], before)
	}
	r.engine.Register(cells)
	view := newView(cells, entries)
	r.view.Store(view)
	r.rebuilt(before.gone(view))
	return nil
}

// Entry is a policy as the View has it.
type Entry struct {
	// Name, UID and Generation are those of the row that was read.
	Name       string
	UID        types.UID
	Generation int64
	// Policy is the compiled policy, or nil with the Errors.
	Policy *policy.Policy
	Errors field.ErrorList
	// Permission is what the policy permits of the cells.
	Permission *placement.Permission
}

// entry compiles a policy, unless the View before has it already.
func (r *Registry) entry(row *registryv1alpha1.PlacementPolicy, before *View) *Entry {
	if old, ok := before.entries[row.Name]; ok && old.UID == row.UID && old.Generation == row.Generation {
		return old
	}
	e := &Entry{Name: row.Name, UID: row.UID, Generation: row.Generation}
	if e.Policy, e.Errors = r.compiler.Compile(row); e.Policy != nil {
		e.Permission = &placement.Permission{
			Policy:    e.Policy.Name,
			Selector:  e.Policy.Selector,
			AllowDark: e.Policy.AllowDark,
			Strategy:  e.Policy.Strategy,
		}
	}
	return e
}
