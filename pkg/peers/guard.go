package peers

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

const (
	// maxAge is how long ago, or how far ahead, a batch may have been sent by
	// this replica's clock.
	maxAge = 30 * time.Second
	// maxSenders is how many instances are remembered: replicas, and those that
	// they replaced within the last minute.
	maxSenders = 256
)

// guard admits each batch once. It knows the last number of each sender for as
// long as an older batch could still be young enough.
type guard map[string]last

type last struct {
	number uint64
	at     time.Time
}

// admit says why a batch isn't taken.
func (g guard) admit(h header, now time.Time) error {
	switch age := now.Sub(h.SentAt); {
	case age > maxAge:
		return fmt.Errorf("the batch was sent %s ago, and is taken for %s", age.Round(time.Second), maxAge)
	case age < -maxAge:
		return fmt.Errorf("the batch was sent %s in the future: set the clock of this replica or of that one", (-age).Round(time.Second))
	}
	before, known := g[h.From]
	if known && h.Number <= before.number {
		return fmt.Errorf("batch %d follows batch %d: this one is a replay", h.Number, before.number)
	}
	if !known && len(g) >= maxSenders {
		maps.DeleteFunc(g, func(_ string, l last) bool { return now.Sub(l.at) > 2*maxAge })
		if len(g) >= maxSenders {
			return errors.New("too many instances have sent batches within a minute")
		}
	}
	g[h.From] = last{h.Number, now}
	return nil
}
