package agent

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseName is the Lease that the replicas of one cell share.
const leaseName = "cellcast-agent"

// The times of the lease: a replica that dies is replaced within 15 seconds,
// half a heartbeat; one that can't renew gives up after ten.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// LeaseLostError ends a replica that held the lease and couldn't renew it. It's
// meant to: whoever can't reach the cell's API server has no fresh figures,
// and another replica reports by now.
type LeaseLostError struct{ Namespace string }

func (e LeaseLostError) Error() string {
	return fmt.Sprintf("the lease %s/%s couldn't be renewed; this replica ends on purpose and waits for the lease once it's restarted", e.Namespace, leaseName)
}

// lease is the right to report for the cell.
type lease struct {
	client    coordination.LeasesGetter
	namespace string
	identity  string
}

// hold waits for the lease and calls lead under it. It returns nil when ctx
// was done, and then gives the lease back, so that the other replica need not
// wait for its end; LeaseLostError when it was lost. Two replicas may overlap for
// as long as one request takes: the hub takes the later report, which is right.
func (l lease) hold(ctx context.Context, lead func(ctx context.Context)) error {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: leaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: l.namespace, Name: leaseName},
			Client:     l.client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: l.identity},
		},
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("preparing the election: %w", err)
	}
	elector.Run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return LeaseLostError{Namespace: l.namespace}
}
