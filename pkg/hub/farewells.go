package hub

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	targetcontroller "cellcast.io/cellcast/pkg/controller/clustertarget"
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

// Start watches until the context ends.
func (f farewells) Start(ctx context.Context) error {
	informer, err := f.targets.rows.rows.GetInformer(ctx, &registryv1alpha1.ClusterTarget{})
	if err != nil {
		return fmt.Errorf("watch targets: %w", err)
	}
	turns := keymutex.NewHashed(256)
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
			case unread(now) && !unread(old):
				go f.targets.recall(ctx, now)
			case replaced(old, now):
				go f.renew(ctx, now, turns)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch targets: %w", err)
	}
	<-ctx.Done()
	return nil
}

// renew reads the credential of a target anew, if this replica has one that its
// owner has replaced: by that the old one goes. Of many changes each waits for its
// turn and goes by the row as it is then, so that the last one decides, and the
// replica that had read the new credential first, as the leader has, reads nothing.
func (f farewells) renew(ctx context.Context, row *registryv1alpha1.ClusterTarget, turns keymutex.KeyMutex) {
	turns.LockKey(string(row.UID))
	defer func() { _ = turns.UnlockKey(string(row.UID)) }()
	f.targets.mu.Lock()
	_, has := f.targets.connected[row.UID]
	f.targets.mu.Unlock()
	if now, ok := f.targets.rows.Target(ctx, row.Namespace, row.Name); has && ok && now.UID == row.UID {
		_, _ = f.targets.reach(ctx, now) // the leader says in the row what is wrong
	}
}

// over reports whether the hub has no business with the target any more: the row is
// going and the leader has let go of it, or the target doesn't believe the
// credential.
func over(row *registryv1alpha1.ClusterTarget) bool {
	return row.Status.State == registryv1alpha1.TargetCredentialRejected ||
		row.DeletionTimestamp != nil && !slices.Contains(row.Finalizers, targetcontroller.Finalizer)
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
