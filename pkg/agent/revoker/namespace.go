package revoker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"cellcast.io/cellcast/pkg/agent/contact"
	"cellcast.io/cellcast/pkg/revocation"
)

// What a promise bears: a namespace isn't promised whose watch has been gone,
// or one of whose Secrets has been overdue, for longer.
const (
	maxBlind   = 15 * time.Second
	maxOverdue = 5 * time.Second
)

// MaxPending is how many credentials of a namespace may be pending for it to be
// promised. With more of them the hub issues no further one there until some
// have ended: one permitted caller can't fill the cell's store. It's below the
// quota that a cell has by default, to refuse before the cell has to.
const MaxPending = 4500

// namespace is what is known of the Secrets of one namespace: of each that has
// the label, what reduce leaves of it.
type namespace struct {
	cache.SharedIndexInformer
	name    string
	contact *contact.Contact
}

// newNamespace returns a namespace to be run. The client is asked only whether
// it can stream a list.
func newNamespace(client any, secrets metadata.Getter, name string) (*namespace, error) {
	c := &contact.Contact{}
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = revocation.LabelSeconds
			list, err := secrets.Namespace(name).List(ctx, options)
			if err != nil {
				return nil, err
			}
			c.Touch(time.Now())
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = revocation.LabelSeconds
			w, err := secrets.Namespace(name).Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return c.Hold(w), nil
		},
	}, client)
	ns := &namespace{
		SharedIndexInformer: cache.NewSharedIndexInformer(lw, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{}),
		name:                name,
		contact:             c,
	}
	// Both fail only for an informer that runs already.
	return ns, errors.Join(ns.SetTransform(reduce), ns.SetWatchErrorHandlerWithContext(ns.logTrouble))
}

// reduce keeps of an object's metadata what is needed, which is bounded whatever
// its author put there: about a kilobyte for each Secret.
func reduce(in any) (any, error) {
	secret, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("unexpected %T among the Secrets", in)
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID,
		ResourceVersion:   secret.ResourceVersion, // by which the informer knows a change
		CreationTimestamp: secret.CreationTimestamp,
		DeletionTimestamp: secret.DeletionTimestamp,
		Labels:            map[string]string{revocation.LabelSeconds: secret.Labels[revocation.LabelSeconds]},
	}}, nil
}

// feed puts every Secret that is there, or comes, into the queue.
func (ns *namespace) feed(q workqueue.TypedInterface[types.NamespacedName]) {
	add := func(o any) {
		if secret, ok := o.(*metav1.PartialObjectMetadata); ok {
			q.Add(types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name})
		}
	}
	// It fails only for an informer that has ended.
	_, _ = ns.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, o any) { add(o) },
	})
}

// logTrouble tells the log why the Secrets can't be read; the informer tries
// again by itself.
func (ns *namespace) logTrouble(ctx context.Context, _ *cache.Reflector, err error) {
	logger := klog.FromContext(ctx).WithValues("namespace", ns.name)
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		logger.V(2).Info("Watch on the Secrets of revocable credentials ended", "reason", err.Error())
	case apierrors.IsForbidden(err):
		logger.Error(err, "No credential is revocable in the namespace, for its Secrets can't be read",
			"next", "let the agent's ServiceAccount list, watch and delete them, as cellcast register cell --revocable prints")
	default:
		logger.Error(err, "No credential is revocable in the namespace, for its Secrets can't be read")
	}
}

// pending returns a Secret that is there and not being deleted, or nil.
func (ns *namespace) pending(name string) *metav1.PartialObjectMetadata {
	found, exists, err := ns.GetStore().GetByKey(ns.name + "/" + name)
	if err != nil || !exists {
		return nil
	}
	if secret := found.(*metav1.PartialObjectMetadata); secret.DeletionTimestamp == nil {
		return secret
	}
	return nil
}

// deadlines are those of all Secrets that are there and not being deleted.
func (ns *namespace) deadlines() iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for _, item := range ns.GetStore().List() {
			secret := item.(*metav1.PartialObjectMetadata)
			if secret.DeletionTimestamp != nil {
				continue
			}
			if at, _ := deadline(secret); !yield(at) {
				return
			}
		}
	}
}

// deadline is when a Secret is due. The error says that its label can't be
// read, which makes it due at once.
func deadline(secret *metav1.PartialObjectMetadata) (time.Time, error) {
	return revocation.Deadline(secret.CreationTimestamp.Time, secret.Labels[revocation.LabelSeconds])
}

// overdue is for how long the oldest deadline has been over; zero where none is.
func (ns *namespace) overdue(now time.Time) (longest time.Duration) {
	for at := range ns.deadlines() {
		longest = max(longest, now.Sub(at))
	}
	return longest
}

// count is how many credentials aren't ended yet.
func (ns *namespace) count() (n int) {
	for range ns.deadlines() {
		n++
	}
	return n
}

func (ns *namespace) promised(now time.Time) bool {
	return ns.HasSynced() && ns.contact.LostFor(now) <= maxBlind && ns.overdue(now) <= maxOverdue && ns.count() <= MaxPending
}
