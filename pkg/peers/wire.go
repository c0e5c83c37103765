package peers

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	kjson "sigs.k8s.io/json"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/refusal"
)

// The bounds of a batch. A sender keeps well below what a receiver takes.
const (
	// MaxBatchBytes is the largest body that is taken.
	MaxBatchBytes = 1 << 20
	// maxItems is how many reports, reservations and releases a batch may have
	// together.
	maxItems = 256
	// fullBytes is when a sender closes a batch.
	fullBytes = 512 << 10
	// maxItemBytes is the largest message: a report that names as many resources
	// as one may has less.
	maxItemBytes = 128 << 10
	maxName      = 253
)

// report is what a cell reported, as it was reported.
type report struct {
	Cell string                    `json:"cell"`
	Spec v1alpha1.CellCapacitySpec `json:"spec"`
}

// reservation is what was placed on a cell. A release repeats the reservation
// that it ends.
type reservation struct {
	Cell    string                `json:"cell"`
	Amounts v1alpha1.ResourceList `json:"amounts"`
	At      time.Time             `json:"at"`
}

func wireReservation(r capacity.Reservation) reservation {
	return reservation{Cell: r.Cell, Amounts: r.Amounts.List(), At: r.At.UTC()}
}

// parse returns the reservation as the index takes it.
func (r reservation) parse() (capacity.Reservation, *refusal.Refusal) {
	amounts, wrong := capacity.ParseAmounts("amounts", r.Amounts)
	return capacity.Reservation{Cell: r.Cell, Amounts: amounts, At: r.At}, wrong
}

// header says which batch it is. The numbers of a sender increase from batch to
// batch, with gaps.
type header struct {
	From   string    `json:"from"`
	Number uint64    `json:"number"`
	SentAt time.Time `json:"sentAt"`
}

// batch is the body of a request, as it's received.
type batch struct {
	header
	Reports      []report      `json:"reports,omitempty"`
	Reservations []reservation `json:"reservations,omitempty"`
	Releases     []reservation `json:"releases,omitempty"`
}

// encoded is the same batch, as it's sent: its messages were encoded once for
// all peers.
type encoded struct {
	header
	Reports      []json.RawMessage `json:"reports,omitempty"`
	Reservations []json.RawMessage `json:"reservations,omitempty"`
	Releases     []json.RawMessage `json:"releases,omitempty"`
}

func encode(h header, items []item) ([]byte, error) {
	b := encoded{header: h}
	for _, i := range items {
		switch i.kind {
		case KindReport:
			b.Reports = append(b.Reports, i.json)
		case KindReservation:
			b.Reservations = append(b.Reservations, i.json)
		case KindRelease:
			b.Releases = append(b.Releases, i.json)
		default:
			return nil, fmt.Errorf("encode a batch: there is no kind %q", i.kind)
		}
	}
	return json.Marshal(b)
}

// decode reads a batch. Unknown and repeated fields are refused.
func decode(body []byte) (*batch, error) {
	var b batch
	strict, err := kjson.UnmarshalStrict(body, &b)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("it can't be read: %w", err)
	}
	switch items := len(b.Reports) + len(b.Reservations) + len(b.Releases); {
	case b.From == "" || len(b.From) > maxName:
		return nil, errors.New("its field from doesn't name an instance")
	case b.Number == 0:
		return nil, errors.New("it has no number")
	case items > maxItems:
		return nil, fmt.Errorf("it has %d messages; at most %d are taken", items, maxItems)
	}
	return &b, nil
}

// answer is the body of a response.
type answer struct {
	// Instance is who took the batch.
	Instance string `json:"instance"`
}

// numbers number the batches of this process, whoever they go to.
type numbers struct{ last atomic.Uint64 }

func (n *numbers) next() uint64 { return n.last.Add(1) }
