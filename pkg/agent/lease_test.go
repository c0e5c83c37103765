package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// replica runs under the lease until its context is done or the lease lost.
type replica struct {
	leads atomic.Bool
	stop  context.CancelFunc
	ended chan error
}

func startReplica(t *testing.T, cell *fake.Clientset, identity string) *replica {
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{stop: cancel, ended: make(chan error, 1)}
	go func() {
		l := lease{client: cell.CoordinationV1(), namespace: "cellcast-system", identity: identity}
		r.ended <- l.hold(ctx, func(ctx context.Context) {
			r.leads.Store(true)
			<-ctx.Done()
			r.leads.Store(false)
		})
	}()
	return r
}

func TestLeaseIsHeldByOneReplicaAndHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := fake.NewClientset()
		first := startReplica(t, cell, "first")
		synctest.Wait()
		second := startReplica(t, cell, "second")
		time.Sleep(time.Minute)
		synctest.Wait()
		if !first.leads.Load() || second.leads.Load() {
			t.Fatalf("after a minute first leads: %t, second leads: %t", first.leads.Load(), second.leads.Load())
		}

		first.stop()
		if err := <-first.ended; err != nil {
			t.Errorf("the replica that was stopped ended with %v", err)
		}
		time.Sleep(5 * time.Second) // it asks every 2 to 4.4 s
		synctest.Wait()
		if !second.leads.Load() {
			t.Error("five seconds after the lease was given back the other replica doesn't lead")
		}
		second.stop()
		if err := <-second.ended; err != nil {
			t.Errorf("the second replica ended with %v", err)
		}
	})
}

func TestLeaseThatIsLostEndsTheReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := fake.NewClientset()
		var down atomic.Bool
		cell.PrependReactor("*", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, errors.New("connection refused")
		})
		r := startReplica(t, cell, "first")
		time.Sleep(time.Minute)
		synctest.Wait()
		if !r.leads.Load() {
			t.Fatal("the replica doesn't lead")
		}

		down.Store(true)
		lost := time.Now()
		err := <-r.ended
		if want := (LeaseLostError{Namespace: "cellcast-system"}); !errors.Is(err, want) {
			t.Errorf("ended with %v, want %v", err, want)
		}
		if took := time.Since(lost); took > 15*time.Second {
			t.Errorf("ended %s after the API server went, want at most 15s", took)
		}
		synctest.Wait()
		if r.leads.Load() {
			t.Error("the replica reports without the lease")
		}
	})
}

func TestLeaseIsWaitedForWhileTheAPIServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := fake.NewClientset()
		cell.PrependReactor("*", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("connection refused")
		})
		r := startReplica(t, cell, "first")
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case err := <-r.ended:
			t.Fatalf("a replica that never held the lease ended with %v", err)
		default:
		}
		r.stop()
		if err := <-r.ended; err != nil {
			t.Errorf("ended with %v, want nothing", err)
		}
	})
}
