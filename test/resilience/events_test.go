package resilience

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"cellcast.io/cellcast/test/world"
)

// event is something that goes wrong while the load runs.
type event struct {
	name string
	// at is when it begins, but not before the one before it is over.
	at time.Duration
	// do makes it happen, and mends it.
	do func(context.Context) error

	began, over time.Duration
}

// settle is the least time from the end of an event to the next.
const settle = 3 * time.Second

// happen makes the events happen in turn, and notes when each did.
func happen(ctx context.Context, t *testing.T, began time.Time, events []*event) error {
	for _, e := range events {
		if e.do == nil {
			continue
		}
		if err := sleep(ctx, max(e.at-time.Since(began), settle)); err != nil {
			return err
		}
		e.began = time.Since(began)
		if err := e.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		e.over = time.Since(began)
		t.Logf("%-22s from %5.1f s to %5.1f s", e.name, e.began.Seconds(), e.over.Seconds())
	}
	return sleep(ctx, settle)
}

// replace ends a replica as a rolling update does, and starts it again.
func replace(replica *world.Server) func(context.Context) error {
	return func(ctx context.Context) error { return replica.Restart(ctx) }
}

// killLeader ends the replica that holds the lease as a crash would.
func killLeader(ctx context.Context) error {
	var leader *world.Server
	err := hub.Eventually(ctx, "a replica leads", func(ctx context.Context) (err error) {
		leader, err = leading(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return outage(leader, 3*time.Second)(ctx)
}

// leading is the replica that holds the lease, by its own word.
func leading(ctx context.Context) (*world.Server, error) {
	for _, replica := range hub.Hub.Servers {
		if replica.PID() == 0 {
			continue
		}
		leads, err := metric(ctx, replica, "leader_election_master_status", `name="cellcast-hub"`)
		if err != nil {
			return nil, err
		}
		if leads == 1 {
			return replica, nil
		}
	}
	return nil, errors.New("no replica leads")
}

// killed is what an outage takes away.
type killed interface {
	Kill() error
	Start(context.Context) error
}

// outage kills a process and starts it again some time later.
func outage(of killed, lasting time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := of.Kill(); err != nil {
			return err
		}
		if err := sleep(ctx, lasting); err != nil {
			return err
		}
		return of.Start(ctx)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
