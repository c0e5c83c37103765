package hub

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWarmup(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	counts := func(missing, reported int) heard {
		return func() ([]string, int) { return []string{"prod-eu", "prod-us", "dev-eu"}[:missing], reported }
	}
	tests := map[string]struct {
		after             time.Duration
		missing, reported int
		warm, ready       bool
	}{
		"no cell is expected":                             {0, 0, 0, true, true},
		"each cell has reported":                          {time.Second, 0, 3, true, true},
		"one cell is missing":                             {time.Second, 1, 2, false, false},
		"the time is over: ready, and still refusing":     {60 * time.Second, 1, 2, false, true},
		"a whole window later, the dead cell is left out": {150 * time.Second, 1, 2, true, true},
		"nobody ever reported: never warm":                {time.Hour, 3, 0, false, true},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			w := newWarmup(start, 60*time.Second, 90*time.Second)
			now := start.Add(tt.after)
			if got := w.ready(now, counts(tt.missing, tt.reported)); got != tt.ready {
				t.Errorf("ready: %t", got)
			}
			if got := w.warm(now, counts(tt.missing, tt.reported)); got != tt.warm {
				t.Errorf("warm: %t", got)
			}
		})
	}
	t.Run("it latches", func(t *testing.T) {
		w := newWarmup(start, time.Minute, time.Minute)
		w.warm(start, counts(0, 3))
		if !w.warm(start, counts(3, 0)) {
			t.Error("it fell back when capacity went stale")
		}
	})
	t.Run("it says once which cells it goes ready without", func(t *testing.T) {
		var said []string
		w := newWarmup(start, time.Minute, time.Minute)
		w.late = func(missing []string) { said = append(said, missing...) }
		for _, after := range []time.Duration{59 * time.Second, 60 * time.Second, 61 * time.Second} {
			w.ready(start.Add(after), counts(2, 1))
		}
		if diff := cmp.Diff([]string{"prod-eu", "prod-us"}, said); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a replica that is warm says nothing", func(t *testing.T) {
		w := newWarmup(start, time.Minute, time.Minute)
		w.late = func(missing []string) { t.Errorf("it said that it misses %v", missing) }
		w.ready(start.Add(time.Hour), counts(2, 1))
	})
}
