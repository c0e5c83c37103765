package peers

import (
	"fmt"
	"strings"
	"time"

	"cellcast.io/cellcast/pkg/capacity"
)

// maxHeld is how many reservations of peers are remembered: those of a minute
// in which a thousand a second are placed. One beyond it is held like the
// others, and can't be released early.
const maxHeld = 1 << 16

// held remembers what peers have reserved, so that a release ends a reservation
// that was made here, and once. A reservation has no name: two with the same
// sender, cell, amounts and time are as good as each other.
type held struct {
	hold    time.Duration
	entries map[heldKey]heldEntry
	order   []expiry // the oldest first
}

type heldKey struct {
	from, cell, amounts string
	at                  int64
}

type heldEntry struct {
	count  int
	placed capacity.Reservation // as the index has it
}

type expiry struct {
	key heldKey
	at  time.Time
}

func newHeld(hold time.Duration) held {
	return held{hold: hold, entries: map[heldKey]heldEntry{}}
}

// add remembers a reservation, and returns it as the index shall have it: not in
// the future, where the release would look for it in another place.
func (h *held) add(from string, placed capacity.Reservation, now time.Time) capacity.Reservation {
	key := keyOf(from, placed)
	if placed.At.After(now) {
		placed.At = now
	}
	h.expire(now)
	if len(h.order) < maxHeld {
		h.entries[key] = heldEntry{h.entries[key].count + 1, placed}
		h.order = append(h.order, expiry{key, now.Add(h.hold)})
	}
	return placed
}

// remove forgets a reservation. It is false where there is none.
func (h *held) remove(from string, placed capacity.Reservation, now time.Time) (capacity.Reservation, bool) {
	h.expire(now)
	key := keyOf(from, placed)
	entry, known := h.entries[key]
	if known {
		h.less(key)
	}
	return entry.placed, known
}

// expire forgets what the index doesn't hold any more.
func (h *held) expire(now time.Time) {
	ended := 0
	for ; ended < len(h.order) && !now.Before(h.order[ended].at); ended++ {
		h.less(h.order[ended].key)
	}
	clear(h.order[:ended])
	h.order = h.order[ended:]
}

func (h *held) less(key heldKey) {
	switch entry := h.entries[key]; {
	case entry.count > 1:
		entry.count--
		h.entries[key] = entry
	default:
		delete(h.entries, key)
	}
}

func keyOf(from string, placed capacity.Reservation) heldKey {
	var amounts strings.Builder
	for _, a := range placed.Amounts {
		fmt.Fprintf(&amounts, "%s=%d,", a.Resource, a.Value)
	}
	return heldKey{from: from, cell: placed.Cell, amounts: amounts.String(), at: placed.At.UnixNano()}
}
