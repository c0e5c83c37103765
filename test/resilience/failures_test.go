package resilience

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cellcast.io/cellcast/pkg/refusal"
)

// Two replicas and three cells under a steady load of placements, each with a
// mint, by the client as a pipeline runs it, while one thing after another is
// taken away. No run may fail, except for want of a credential of the cell that
// is away: its retries have to hide the rest. How long they take is shown and
// not judged, for that is the machine's as much as the hub's.
func TestFailuresUnderLoad(t *testing.T) {
	require(t)
	pair(t)
	cell := hub.Cell("eu")
	away := &event{name: "cell's API away", at: 22 * time.Second, do: outage(cell.APIServer, 5*time.Second)}
	events := []*event{
		{name: "nothing"},
		{name: "replica replaced", at: 6 * time.Second, do: replace(hub.Hub.Servers[0])},
		{name: "leader killed", at: 14 * time.Second, do: killLeader},
		away,
		{name: "hub's etcd away", at: 43 * time.Second, do: outage(hub.Hub.Etcd, 10*time.Second)},
	}
	l := sustained(t)
	if l.rate < tellingRate {
		t.Logf("ONLY %d PLACEMENTS A SECOND, fewer than %d: some %d in all, so that few are under way when something is taken away, "+
			"and it says little that none is lost. Run it on a faster machine, or one with nothing else to do",
			l.rate, tellingRate, l.rate*int(lasting/time.Second))
	}
	l.began = time.Now()
	done, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(done)
		failed <- happen(t.Context(), t, l.began, events)
	}()
	l.run(t.Context(), lasting, done)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d placements a second; the latest began %s late; %d found no place among %d under way\n%s",
		l.rate, l.late.Round(time.Millisecond), l.skipped.Load(), cap(l.places), table(summarise(events, l.outcomes)))
	if skipped := l.skipped.Load(); skipped > 0 {
		t.Errorf("%d placements were not begun, for want of a place among those under way", skipped)
	}
	judge(t, l.outcomes, func(o outcome) bool { return excused(o, cell.Name, away.began, away.over) })

	// Whatever failed meanwhile, no token is left: not in the stores of the hub and
	// of the cells, and not in a log or an audit log of anybody.
	kept, searched, err := l.minted.under(hub.Dir)
	if err != nil || len(kept) > 0 {
		t.Errorf("tokens are in %v: %v", kept, err)
	}
	t.Logf("none of %d tokens is in %d files", l.minted.count(), searched)
}

// pair leaves two of the replicas, which have heard of every cell.
func pair(t *testing.T) {
	t.Helper()
	third := hub.Hub.Servers[2]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := third.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := third.Start(context.Background()); err != nil {
			t.Error(err)
		}
	})
	now := time.Now()
	for _, replica := range hub.Hub.Servers[:2] {
		client := clientOf(t, replica)
		eventually(t, replica.Name()+" has heard of every cell", func(ctx context.Context) error {
			return heardSince(ctx, client, now)
		})
	}
}

// recovery is how long after its return a cell may still be without credentials:
// a hub that found it gone asks it again after ten to fifteen seconds.
const recovery = 15 * time.Second

// excused reports whether a run failed for want of a credential of the cell,
// while it was away or just after.
func excused(o outcome, cell string, began, over time.Duration) bool {
	return o.exit == 5 && (o.reason == string(refusal.MintUnavailable) || o.reason == string(refusal.MintFailed)) &&
		strings.Contains(o.message, "cell "+cell) && o.ended >= began && o.began <= over+recovery
}

// judge fails the test for each kind of failure that isn't excused, with the
// first of its kind.
func judge(t *testing.T, outcomes []outcome, excused func(outcome) bool) {
	t.Helper()
	firsts, counts := map[string]outcome{}, map[string]int{}
	for _, o := range outcomes {
		if o.exit == 0 || excused(o) {
			continue
		}
		kind := o.failure()
		if counts[kind]++; counts[kind] == 1 || o.began < firsts[kind].began {
			firsts[kind] = o
		}
	}
	for kind, first := range firsts {
		t.Errorf("%d failed with %s; the first began at %s and ended at %s: %s", counts[kind], kind,
			fmt.Sprintf("%.2f s", first.began.Seconds()), fmt.Sprintf("%.2f s", first.ended.Seconds()), first.message)
	}
}
