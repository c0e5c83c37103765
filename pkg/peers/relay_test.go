package peers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// run runs a Relay to a and b in a bubble until the test has looked.
func run(t *testing.T, n *network, look func(t *testing.T, r *Relay, set func(...string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{Instance: "me", Post: n.post, Metrics: NewMetrics()})
		ctx, cancel := context.WithCancel(t.Context())
		sets := make(chan []string)
		var ended sync.WaitGroup
		ended.Go(func() {
			if err := r.Run(ctx, func(ctx context.Context, set func([]string)) error {
				for {
					select {
					case urls := <-sets:
						set(urls)
					case <-ctx.Done():
						return nil
					}
				}
			}); err != nil {
				t.Error(err)
			}
		})
		set := func(urls ...string) { sets <- urls; synctest.Wait() }
		set("https://a", "https://b")
		look(t, r, set)
		cancel()
		ended.Wait()
	})
}

func TestRelayHandsOverInBatches(t *testing.T) {
	n := &network{}
	run(t, n, func(t *testing.T, r *Relay, _ func(...string)) {
		began := time.Now()
		r.Report("eu", spec(1, began, "1"))
		r.Report("us", spec(7, began, "1"))
		r.Report("eu", spec(2, began, "1"))
		r.Reserve(cores("eu", 500, began))
		r.Release(cores("eu", 500, began))
		time.Sleep(49 * time.Millisecond)
		synctest.Wait()
		n.expect(t)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		for _, at := range n.at {
			if after := at.Sub(began); after != 50*time.Millisecond {
				t.Errorf("a batch left after %s", after)
			}
		}
		n.expect(t,
			"https://a reserve eu 500m, release eu 500m, report eu 2, report us 7",
			"https://b reserve eu 500m, release eu 500m, report eu 2, report us 7")
		counted(t, r.options.Metrics, `cellcast_relay_messages_total{direction="sent",kind="release",result="ok"} 2
cellcast_relay_messages_total{direction="sent",kind="report",result="ok"} 4
cellcast_relay_messages_total{direction="sent",kind="reservation",result="ok"} 2
`)
	})
}

func TestRelaySendsAFullBatchAtOnce(t *testing.T) {
	n := &network{}
	run(t, n, func(t *testing.T, r *Relay, set func(...string)) {
		set("https://a")
		for i := range 257 {
			r.Reserve(cores(fmt.Sprint(i), 1, time.Now()))
		}
		synctest.Wait()
		counted(t, r.options.Metrics, `cellcast_relay_messages_total{direction="sent",kind="reservation",result="ok"} 257
`)
		if len(n.posted) != 2 {
			t.Errorf("%d batches, want 2: of 256 and of one", len(n.posted))
		}
	})
}

func TestRelayTriesReportsAgainAndNothingElse(t *testing.T) {
	n := &network{}
	run(t, n, func(t *testing.T, r *Relay, set func(...string)) {
		set("https://a")
		n.fail("https://a", errAway)
		began := time.Now()
		r.Report("eu", spec(1, began, "1"))
		r.Report("us", spec(1, began, "1"))
		r.Reserve(cores("eu", 500, began))
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		n.expect(t, "https://a reserve eu 500m, report eu 1, report us 1")
		r.Report("us", spec(2, began, "1"))
		n.fail("", nil)
		time.Sleep(time.Second)
		synctest.Wait()
		n.expect(t, "https://a report eu 1, report us 2")
		counted(t, r.options.Metrics, `cellcast_relay_messages_total{direction="sent",kind="report",result="ok"} 2
cellcast_relay_messages_total{direction="sent",kind="reservation",result="failed"} 1
`)
	})
}

func TestRelayToADeadPeerLosesItsOldestAlone(t *testing.T) {
	n := &network{}
	run(t, n, func(t *testing.T, r *Relay, _ func(...string)) {
		n.fail("https://a", errAway)
		r.Reserve(cores("first", 1000, time.Now()))
		time.Sleep(gather)
		synctest.Wait()
		n.expect(t, "https://a reserve first 1", "https://b reserve first 1") // and a pauses
		for i := range maxQueued + 2 {
			r.Reserve(cores(fmt.Sprint(i), 1000, time.Now()))
			if i%maxItems == 0 {
				synctest.Wait() // b keeps up
			}
		}
		n.fail("", nil)
		time.Sleep(time.Second)
		synctest.Wait()
		counted(t, r.options.Metrics, `cellcast_relay_messages_total{direction="sent",kind="reservation",result="dropped"} 2
cellcast_relay_messages_total{direction="sent",kind="reservation",result="failed"} 1
cellcast_relay_messages_total{direction="sent",kind="reservation",result="ok"} 8195
`)
		for _, batch := range n.posted {
			if strings.HasPrefix(batch, "https://a reserve 0 1, ") {
				t.Error("the oldest was kept")
			}
		}
	})
}

func TestRelayPausesLongerAndLonger(t *testing.T) {
	n := &network{}
	run(t, n, func(t *testing.T, r *Relay, set func(...string)) {
		set("https://a")
		n.fail("https://a", errAway)
		began := time.Now()
		r.Report("eu", spec(1, began, "1"))
		time.Sleep(15 * time.Second)
		synctest.Wait()
		var got []time.Duration
		for _, at := range n.at {
			got = append(got, at.Sub(began)-50*time.Millisecond)
		}
		want := []time.Duration{0, 250e6, 750e6, 1750e6, 3750e6, 7750e6, 12750e6}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("tried after %v, want %v", got, want)
		}
	})
}

func TestRelayStopsWhenItMeetsItself(t *testing.T) {
	n := &network{names: map[string]string{"https://a": "me"}}
	run(t, n, func(t *testing.T, r *Relay, set func(...string)) {
		for i := range int64(3) {
			r.Report("eu", spec(i+1, time.Now(), "1"))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		n.expect(t, "https://a report eu 1", "https://b report eu 1", "https://b report eu 2", "https://b report eu 3")
		if got := testutil.ToFloat64(r.options.Metrics.peers); got != 1 {
			t.Errorf("%v peers, want 1", got)
		}
		set("https://a", "https://b")
		r.Report("eu", spec(9, time.Now(), "1"))
		time.Sleep(time.Second)
		synctest.Wait()
		n.expect(t, "https://b report eu 9")
	})
}

func TestRelayFollowsThePeers(t *testing.T) {
	n := &network{}
	run(t, n, func(t *testing.T, r *Relay, set func(...string)) {
		r.Report("eu", spec(1, time.Now(), "1"))
		set("https://b", "https://c", "https://c")
		if got := testutil.ToFloat64(r.options.Metrics.peers); got != 2 {
			t.Errorf("%v peers, want 2", got)
		}
		r.Report("us", spec(1, time.Now(), "1"))
		time.Sleep(time.Second)
		synctest.Wait()
		n.expect(t, "https://a report eu 1", "https://b report eu 1, report us 1", "https://c report us 1")
		set()
		r.Report("us", spec(2, time.Now(), "1"))
		time.Sleep(time.Second)
		synctest.Wait()
		n.expect(t)
	})
}

func TestRelayThatEndsHandsOverWhatIsQueued(t *testing.T) {
	n := &network{}
	run(t, n, func(_ *testing.T, r *Relay, _ func(...string)) {
		r.Reserve(cores("eu", 1000, time.Now()))
	})
	n.expect(t,
		"https://a reserve eu 1",
		"https://b reserve eu 1")
}

func TestNoRelayDoesNothing(t *testing.T) {
	var r *Relay
	r.Report("eu", spec(1, time.Now(), "1"))
	r.Reserve(cores("eu", 1, time.Now()))
	r.Release(cores("eu", 1, time.Now()))
}
