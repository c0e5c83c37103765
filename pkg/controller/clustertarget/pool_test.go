package clustertarget

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

func TestThePoolIsBoundedAndTakesTurnsByNamespace(t *testing.T) {
	tests := map[string]struct {
		atOnce, ofEach int
		want           [][]string // by the minute
	}{
		"the whole is bounded, and namespaces take turns": {3, 3, [][]string{{"a0", "b0", "c0"}, {"a1", "a2", "b1"}, {"a3", "a4"}}},
		"a namespace is bounded, even where there's room": {9, 2, [][]string{{"a0", "a1", "b0", "b1", "c0"}, {"a2", "a3"}, {"a4"}}},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(clock.RealClock{}, tt.atOnce, tt.ofEach)
				var mu sync.Mutex
				var begun []string
				for _, of := range []struct {
					namespace string
					jobs      int
				}{{"a", 5}, {"b", 2}, {"c", 1}} {
					for i := range of.jobs {
						p.add(of.namespace, func(ctx context.Context) {
							mu.Lock()
							begun = append(begun, fmt.Sprint(of.namespace, i))
							mu.Unlock()
							time.Sleep(time.Minute)
						})
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- p.Start(ctx) }()
				for i, batch := range tt.want {
					time.Sleep(time.Second)
					mu.Lock()
					slices.Sort(begun)
					if diff := cmp.Diff(batch, begun); diff != "" {
						t.Errorf("minute %d (-want +got):\n%s", i, diff)
					}
					begun = nil
					mu.Unlock()
					time.Sleep(time.Minute - time.Second)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestThePoolDoesntHoldUpTheEndOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(clock.RealClock{}, 1, 1)
		p.add("a", func(context.Context) { time.Sleep(time.Hour) })
		p.add("a", func(context.Context) { t.Error("a job began after the end") })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		if err := p.Start(ctx); err != nil || time.Since(began) > 4*time.Second {
			t.Errorf("it ended after %s: %v", time.Since(began), err)
		}
		time.Sleep(2 * time.Hour)
	})
}
