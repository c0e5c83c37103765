package peers

import (
	"encoding/json"
	"slices"
	"sync"
)

// maxQueued is how many messages wait for one peer: those of ten seconds in
// which 400 a second are placed.
const maxQueued = 4096

// item is one message that waits.
type item struct {
	kind Kind
	cell string // of a report
	json json.RawMessage
}

// outbox is what waits for one peer, the oldest first. Of a cell's reports only
// the newest waits.
type outbox struct {
	some, full chan struct{} // capacity one: there is something, there is a batch

	mu    sync.Mutex
	items []item
}

func newOutbox() *outbox {
	return &outbox{some: make(chan struct{}, 1), full: make(chan struct{}, 1)}
}

// put adds a message. When the outbox is full the oldest is lost, and returned.
func (o *outbox) put(i item) (lost []item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := o.reportOf(i.cell, i.kind); at >= 0 {
		o.items[at] = i
		return nil
	}
	if len(o.items) >= maxQueued {
		lost = []item{o.items[0]}
		o.items[0] = item{}
		o.items = o.items[1:]
	}
	o.items = append(o.items, i)
	signal(o.some)
	if len(o.items) >= maxItems {
		signal(o.full)
	}
	return lost
}

// take removes the next batch.
func (o *outbox) take() []item {
	o.mu.Lock()
	defer o.mu.Unlock()
	count, bytes := 0, 0
	for count < min(len(o.items), maxItems) && bytes < fullBytes {
		bytes += len(o.items[count].json)
		count++
	}
	taken := slices.Clone(o.items[:count])
	clear(o.items[:count])
	o.items = o.items[count:]
	return taken
}

// putBack takes reports that weren't handed over, unless newer ones wait or
// there is no room.
func (o *outbox) putBack(items []item) (lost []item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range items {
		switch {
		case o.reportOf(i.cell, i.kind) >= 0:
		case len(o.items) >= maxQueued:
			lost = append(lost, i)
		default:
			o.items = append(o.items, i)
			signal(o.some)
		}
	}
	return lost
}

func (o *outbox) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items = nil
}

// reportOf is where the report of a cell waits, or -1.
func (o *outbox) reportOf(cell string, kind Kind) int {
	if kind != KindReport {
		return -1
	}
	return slices.IndexFunc(o.items, func(i item) bool { return i.kind == KindReport && i.cell == cell })
}

func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
