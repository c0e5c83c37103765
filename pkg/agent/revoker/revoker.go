// Package revoker ends revocable credentials when their time is over. Each is
// bound to an empty Secret of the cell, whose label says for how long; the
// revoker deletes the Secret, and the cell's API server refuses the token from
// then on, give or take the ten seconds for which it remembers one that it has
// accepted.
//
// It promises the namespaces where it does so, and only while it can: its watch
// there is alive, nothing is overdue, and there are no more than MaxPending. It
// reads the metadata of Secrets alone, never what is in them.
//
// Every replica deletes: a deletion that another replica was faster with does
// no harm, and so a replica that dies delays nothing. Nothing is remembered: a
// replica that starts lists what is there, and deletes what is due.
//
// A Secret is due by its creationTimestamp, which is the API server's, and by
// the agent's clock: an agent whose clock is behind ends credentials that much
// later, one whose clock is ahead that much earlier.
package revoker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// workers is how many Secrets are deleted at a time. After a restart, many may
// be due at once.
const workers = 8

// The waits after a deletion that failed: the first, doubled up to the longest.
const (
	firstRetry   = 200 * time.Millisecond
	longestRetry = 10 * time.Second
)

// Revoker ends the credentials of some namespaces.
type Revoker struct {
	secrets metadata.Getter
	// namespaces are sorted.
	namespaces []*namespace
	metrics    metrics
}

// New returns a revoker for these namespaces, which may be none. The client is
// used for Secrets alone; without namespaces it may be nil.
func New(client metadata.Interface, names []string) (*Revoker, error) {
	r := &Revoker{metrics: newMetrics()}
	if len(names) == 0 {
		return r, nil
	}
	r.secrets = client.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		ns, err := newNamespace(client, r.secrets, name)
		if err != nil {
			return nil, fmt.Errorf("preparing the informer of Secrets in %s: %w", name, err)
		}
		r.namespaces = append(r.namespaces, ns)
	}
	return r, nil
}

// Run ends credentials until ctx is done.
func (r *Revoker) Run(ctx context.Context) {
	q := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, longestRetry))
	var running sync.WaitGroup
	for _, ns := range r.namespaces {
		ns.feed(q)
		running.Go(func() { ns.RunWithContext(ctx) })
	}
	for range workers {
		running.Go(func() { r.work(ctx, q) })
	}
	running.Go(func() { wait.UntilWithContext(ctx, r.tellFull, tellEvery) })
	<-ctx.Done()
	q.ShutDown()
	running.Wait()
}

// tellEvery is how often the log tells of a namespace that is full.
const tellEvery = time.Minute

// tellFull tells the log which namespaces aren't promised for the number of their
// credentials alone: the hub's refusal points there.
func (r *Revoker) tellFull(ctx context.Context) {
	for _, ns := range r.namespaces {
		if n := ns.count(); n > MaxPending {
			klog.FromContext(ctx).Error(nil, "No further credential is issued in the namespace, for too many are pending",
				"namespace", ns.name, "pending", n, "most", MaxPending)
		}
	}
}

// WaitForSync returns when the Secrets of every namespace were listed once, and
// false when ctx was done before.
func (r *Revoker) WaitForSync(ctx context.Context) bool {
	var synced []cache.InformerSynced
	for _, ns := range r.namespaces {
		synced = append(synced, ns.HasSynced)
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// Promised are the namespaces, sorted, in which credentials are being ended
// now: their Secrets are known, the watch on them is alive, none is overdue and
// they aren't too many.
func (r *Revoker) Promised(now time.Time) []string {
	var names []string
	for _, ns := range r.namespaces {
		if ns.promised(now) {
			names = append(names, ns.name)
		}
	}
	return names
}
