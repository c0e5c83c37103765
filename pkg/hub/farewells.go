package hub

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/custody"
)

// farewells lets go of credentials on every replica, asked for or not: of each
// target whose row goes, and of what the owner has replaced. Where the leader
// couldn't read the credential any more, the others look for themselves: it may be
// away for a while, or its owner may have taken it away.
type farewells struct{ targets *targets }

var _ manager.LeaderElectionRunnable = farewells{}

// NeedLeaderElection is false: every replica has credentials to let go of.
func (farewells) NeedLeaderElection() bool { return false }

// renewers is how many credentials a replica reads anew at once: a source that is
// slow holds one of them for some seconds.
const renewers = 16

// held is a target whose credential this replica may have.
type held struct {
	types.NamespacedName
	uid types.UID
}

// Start watches until the context ends.
func (f farewells) Start(ctx context.Context) error {
	informer, err := f.targets.rows.rows.GetInformer(ctx, &registryv1alpha1.ClusterTarget{})
	if err != nil {
		return fmt.Errorf("watch targets: %w", err)
	}
	// However often a row changes, it's looked at by one at a time, and as it is then.
	queue := workqueue.NewTyped[held]()
	defer queue.ShutDown()
	for range renewers {
		go f.renewing(ctx, queue)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if row, ok := object.(*registryv1alpha1.ClusterTarget); ok {
				f.targets.Forget(row.UID)
			}
		},
		UpdateFunc: func(before, after any) {
			old, was := before.(*registryv1alpha1.ClusterTarget)
			now, is := after.(*registryv1alpha1.ClusterTarget)
			switch {
			case !was || !is:
			case old.UID != now.UID, over(now) && !over(old):
				f.targets.Forget(old.UID)
			case unread(now) && !unread(old), replaced(old, now):
				queue.Add(held{client.ObjectKeyFromObject(now), now.UID})
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch targets: %w", err)
	}
	<-ctx.Done()
	return nil
}

func (f farewells) renewing(ctx context.Context, queue workqueue.TypedInterface[held]) {
	for {
		of, shutdown := queue.Get()
		if shutdown {
			return
		}
		f.renew(ctx, of)
		queue.Done(of)
	}
}

// renew reads the credential of a target anew, if this replica has it: what was
// replaced, or what the source doesn't give any more, goes by that. A replica that
// had read the new one first, as the leader has, reads nothing.
func (f farewells) renew(ctx context.Context, of held) {
	row := f.still(ctx, of)
	f.targets.mu.Lock()
	_, has := f.targets.connected[of.uid]
	f.targets.mu.Unlock()
	switch {
	case row == nil || !has:
	case unread(row):
		_, _ = f.targets.connect(ctx, row) // the leader says in the row what is wrong
	default:
		_, _ = f.targets.reach(ctx, row)
	}
	if f.still(ctx, of) == nil { // it may be over since, and was read after that
		f.targets.Forget(of.uid)
	}
}

// still is the row of a target that isn't over; nil where it is.
func (f farewells) still(ctx context.Context, of held) *registryv1alpha1.ClusterTarget {
	row, ok := f.targets.rows.Target(ctx, of.Namespace, of.Name)
	if !ok || row.UID != of.uid || over(row) {
		return nil
	}
	return row
}

// over reports whether the hub has no business with the target any more: the row is
// going and the leader has let go of it, or the target doesn't believe the
// credential.
func over(row *registryv1alpha1.ClusterTarget) bool {
	return row.Status.State == registryv1alpha1.TargetCredentialRejected ||
		row.DeletionTimestamp != nil && !slices.Contains(row.Finalizers, registryv1alpha1.TargetFinalizer)
}

// unread reports whether the leader couldn't read the credential.
func unread(row *registryv1alpha1.ClusterTarget) bool {
	return row.Status.State == registryv1alpha1.TargetCredentialUnavailable
}

// replaced reports whether the row names another credential, or the leader has read
// a newer one in the same place.
func replaced(old, now *registryv1alpha1.ClusterTarget) bool {
	return old.Status.CredentialVersion != now.Status.CredentialVersion || !reflect.DeepEqual(custody.RefOf(old), custody.RefOf(now))
}
