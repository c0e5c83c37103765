package revoker

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// deleteTimeout bounds one deletion.
	deleteTimeout = 5 * time.Second
	// longestNap is how long a deadline is waited for at a stretch, for the
	// clock may be set meanwhile.
	longestNap = 10 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// work takes Secrets from the queue until it's shut down.
func (r *Revoker) work(ctx context.Context, q queue) {
	for {
		key, ended := q.Get()
		if ended {
			return
		}
		r.attend(ctx, q, key)
		q.Done(key)
	}
}

// attend deletes a Secret that is due, and comes back to one that isn't yet.
func (r *Revoker) attend(ctx context.Context, q queue, key types.NamespacedName) {
	secret := r.pending(key)
	if secret == nil || ctx.Err() != nil {
		q.Forget(key)
		return
	}
	at, unreadable := deadline(secret)
	if rest := time.Until(at); rest > 0 {
		q.AddAfter(key, min(rest, longestNap))
		return
	}
	logger := klog.FromContext(ctx).WithValues("namespace", key.Namespace, "secret", key.Name)
	if unreadable != nil {
		logger.Error(unreadable, "The Secret is deleted at once")
	}
	result, err := r.end(ctx, secret)
	if ctx.Err() != nil {
		return
	}
	r.metrics.count(result)
	if result == failed {
		logger.Error(err, "The credential couldn't be ended", "overdue", time.Since(at))
		q.AddRateLimited(key)
		return
	}
	logger.V(2).Info("Credential ended", "result", result, "overdue", time.Since(at))
	q.Forget(key)
}

func (r *Revoker) pending(key types.NamespacedName) *metav1.PartialObjectMetadata {
	for _, ns := range r.namespaces {
		if ns.name == key.Namespace {
			return ns.pending(key.Name)
		}
	}
	return nil
}

// end deletes this very Secret. One that is gone, or that another of its name
// has taken the place of, needs no deletion any more.
func (r *Revoker) end(ctx context.Context, secret *metav1.PartialObjectMetadata) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	err := r.secrets.Namespace(secret.Namespace).Delete(ctx, secret.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(secret.UID))})
	switch {
	case err == nil:
		return ended, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return gone, nil
	default:
		return failed, fmt.Errorf("deleting the Secret: %w", err)
	}
}
