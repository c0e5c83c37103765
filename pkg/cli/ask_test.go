package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheNextTryHidesAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		word        string
		least, most time.Duration // of the wait
		says        string
	}{
		"of a gateway":                  {"gateway", 500 * time.Millisecond, 750 * time.Millisecond, ""},
		"of a connection":               {"cut", 500 * time.Millisecond, 750 * time.Millisecond, ""},
		"of a replica that has started": {"refused/PlacementUnavailable", 5 * time.Second, 5 * time.Second, "PlacementUnavailable: the fake says so; asking again in 5s\n"},
		"of a hub with too many":        {"refused/RateLimited", time.Second, time.Second, ""},
		"of the API server's fairness":  {"throttled", 7 * time.Second, 7 * time.Second, "RateLimited: the server has received too many requests and has asked us to try again later (post placements.cellcast.io); asking again in 7s\n"},
		"of a cell":                     {"refused/MintUnavailable", 10 * time.Second, 10 * time.Second, "MintUnavailable: the fake says so; asking again in 10s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t)
			c.hub.answers(test.word)
			c.sleep = func() { c.hub.answers("") }
			file := filepath.Join(c.dir, "cell.kubeconfig")
			got := c.run("cellcast", "place", "payments/api", "--write-kubeconfig", file)
			if want := test.says + strings.ReplaceAll(wrote, "FILE", file); got.code != 0 || got.err != want {
				t.Errorf("exit %d, stderr %q, want %q", got.code, got.err, want)
			}
			if content, _ := os.ReadFile(file); !strings.Contains(string(content), mintedToken) {
				t.Errorf("the file is %q", content)
			}
			if slept := c.clock.slept; len(slept) != 1 || slept[0] < test.least || slept[0] > test.most {
				t.Errorf("waited %v, want once %v to %v", slept, test.least, test.most)
			}
			if asked, _ := c.hub.counts(); asked != 2 || len(c.hub.connections) != 2 {
				t.Errorf("asked %d times over %d connections, want each try on its own", asked, len(c.hub.connections))
			}
		})
	}
}

func TestTheWaitsGrowAndEndWithTheTime(t *testing.T) {
	c := newCaller(t)
	c.run("cellcast", "place", "gateway", "--timeout", "20s")
	var total time.Duration
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
		if got := c.clock.slept[i]; got < want || got > want*3/2 {
			t.Errorf("wait %d is %v, want %v to %v", i+1, got, want, want*3/2)
		}
	}
	for _, d := range c.clock.slept {
		total += d
	}
	if total > 19*time.Second || total < 10*time.Second {
		t.Errorf("waited %v of 20s, want the last try to have a second", total)
	}
}

func TestAWaitThatDoesNotFitIsNotBegun(t *testing.T) {
	for timeout, asked := range map[string]int{"5500ms": 1, "6s": 2} {
		c := newCaller(t)
		got := c.run("cellcast", "place", "refused/PlacementUnavailable", "--timeout", timeout)
		if n, _ := c.hub.counts(); n != asked || got.code != 4 {
			t.Errorf("with %s for a wait of 5s and a try of 1s: exit %d, asked %d times, want %d", timeout, got.code, n, asked)
		}
	}
}

func TestCellsAreAskedForAgain(t *testing.T) {
	c := newCaller(t)
	c.hub.Close()
	got := c.run("cellcast", "cells", "-o", "yaml", "--timeout", "5s")
	if got.code != 4 || len(c.clock.slept) < 2 {
		t.Errorf("exit %d, waits %v", got.code, c.clock.slept)
	}
	if !strings.HasPrefix(got.out, "apiVersion: v1\nkind: Status\nmessage: 'the hub didn''t answer: dial tcp ") ||
		!strings.HasSuffix(got.out, "\nmetadata: {}\nreason: ServiceUnavailable\nstatus: Failure\n") {
		t.Errorf("stdout is\n%s", got.out)
	}
}

// Whoever interrupts a run has decided; no stance answers then.
func TestAnInterruptEndsTheWait(t *testing.T) {
	c := newCaller(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.ctx, c.sleep = ctx, cancel
	file := c.file("cell.kubeconfig", earlier)
	got := c.run("cellcast", "place", "refused/PlacementUnavailable", "--on-unavailable", "eu-1", "--write-kubeconfig", file)
	want := answerOf{1, "", "PlacementUnavailable: the fake says so; asking again in 5s\n" +
		"Removed " + file + ": it was for the cell of an earlier run.\n" +
		"Error: interrupted\n" +
		"Request id: " + requestID + "\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked, _ := c.hub.counts(); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}
