package agent

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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"cellcast.io/cellcast/pkg/agent/contact"
)

// informer keeps the figures F of every object of one kind. An object is
// counted as it comes off the wire and then dropped: of a pod of three
// containers, which takes 19 KB whole, some 750 bytes stay, name and cache
// included (BenchmarkPodMemory).
type informer[F any] struct {
	cache.SharedIndexInformer
	contact *contact.Contact
}

// source lists and watches one kind.
type source struct {
	resource string
	list     cache.ListWithContextFunc
	watch    cache.WatchFuncWithContext
}

// object is a kind O that is used by pointer.
type object[O any] interface {
	*O
	runtime.Object
	metav1.Object
}

// newInformer returns an informer that counts with count. The client is asked
// only whether it can stream a list.
func newInformer[O, F any, P object[O]](client any, example P, from source, count func(P) F) (*informer[F], error) {
	c := &contact.Contact{}
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := from.list(ctx, options)
			if err == nil {
				c.Touch(time.Now())
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := from.watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return c.Hold(w), nil
		},
	}, client)
	i := &informer[F]{
		SharedIndexInformer: cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{}),
		contact:             c,
	}
	// Both fail only for an informer that runs already.
	return i, errors.Join(
		i.SetWatchErrorHandlerWithContext(logTrouble(from.resource)),
		i.SetTransform(func(in any) (any, error) {
			switch in := in.(type) {
			case P:
				return reduce(in, count), nil
			case *counted[F]:
				return in, nil
			default:
				return nil, fmt.Errorf("unexpected %T among the %s", in, from.resource)
			}
		}))
}

// logTrouble tells the log why the cell can't be read; the informer tries
// again by itself.
func logTrouble(resource string) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, _ *cache.Reflector, err error) {
		logger := klog.FromContext(ctx)
		switch {
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			logger.V(2).Info("Watch ended", "resource", resource, "reason", err.Error())
		case apierrors.IsForbidden(err):
			logger.Error(err, "The cell can't be read", "resource", resource, "next", "let the agent's ServiceAccount list and watch it, as cellcast register cell prints")
		default:
			logger.Error(err, "The cell can't be read", "resource", resource)
		}
	}
}

// figures are those of all objects that are there now.
func (i *informer[F]) figures() iter.Seq[F] {
	return func(yield func(F) bool) {
		for _, item := range i.GetStore().List() {
			if !yield(item.(*counted[F]).figures) {
				return
			}
		}
	}
}

// counted is what is kept of an object: what the cache needs to tell it from
// others, and its figures.
type counted[F any] struct {
	metav1.ObjectMeta
	figures F
}

func reduce[F any, P metav1.Object](in P, count func(P) F) *counted[F] {
	return &counted[F]{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       in.GetNamespace(),
			Name:            in.GetName(),
			ResourceVersion: in.GetResourceVersion(),
		},
		figures: count(in),
	}
}
