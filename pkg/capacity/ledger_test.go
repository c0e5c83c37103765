package capacity

import (
	"testing"
	"time"
)

// A ledger is bounded by time and loses nothing.
func TestLedgerIsBounded(t *testing.T) {
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	ix := New(Options{}, noon)
	ix.Sync([]string{"a"}, nil)
	pod := Amounts{{Resource: "pods", Value: 1}}

	// A placement each 5 ms, for three times as long as one is held.
	most, step := 0, 5*time.Millisecond
	now := noon
	for range int(3 * ix.hold / step) {
		now = now.Add(step)
		ix.Reserve(Reservation{Cell: "a", Amounts: pod, At: now}, now)
		most = max(most, len(ix.cells[0].placed))
	}
	if most > 66 {
		t.Errorf("the ledger had %d entries", most)
	}
	held := ix.cells[0].reserved.of("pods")
	if least, batch := int64(ix.hold/step), int64(ix.hold/batchesPerHold/step)+1; held < least || held > least+batch {
		t.Errorf("%d pods are held, want %d and at most %d more", held, least, batch)
	}
}

func TestABatchEndsWithTheLastOfIt(t *testing.T) {
	var l ledger
	pod := Amounts{{Resource: "pods", Value: 1}}
	l.add(7, 100, pod)
	l.add(7, 90, pod)
	l.expire(99)
	if got := l.sum(nil).of("pods"); got != 2 {
		t.Errorf("%d pods are held", got)
	}
	l.expire(100)
	if len(l) != 0 {
		t.Errorf("%v is held", l)
	}
}

func TestAmountsDoNotOverflow(t *testing.T) {
	var sum Amounts
	for range 20 {
		sum.add(Amounts{{Resource: "memory", Value: maxValue}})
	}
	if got := sum.of("memory"); got != 9223372036854775807 {
		t.Errorf("got %d", got)
	}
}
