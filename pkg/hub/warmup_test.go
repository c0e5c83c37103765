package hub

import (
	"testing"
	"time"
)

func TestWarmup(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	counts := func(missing, reported int) func() (int, int) {
		return func() (int, int) { return missing, reported }
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
			w := &warmup{started: start, timeout: 60 * time.Second, grace: 90 * time.Second}
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
		w := &warmup{started: start, timeout: time.Minute, grace: time.Minute}
		w.warm(start, counts(0, 3))
		if !w.warm(start, counts(3, 0)) {
			t.Error("it fell back when capacity went stale")
		}
	})
}
