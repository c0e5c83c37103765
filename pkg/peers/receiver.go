package peers

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/refusal"
)

// Index is what this replica knows of the cells.
type Index interface {
	Observe(cell string, report capacity.Report, now time.Time) (capacity.Receipt, *refusal.Refusal)
	Reserve(placed capacity.Reservation, now time.Time)
	Release(placed capacity.Reservation, now time.Time)
}

// ReceiverOptions are what a Receiver needs.
type ReceiverOptions struct {
	// Instance is the id of this process, as its Relay has it.
	Instance string
	Index    Index
	Metrics  *Metrics
	// Hold is how long the index holds a reservation; zero means its default.
	Hold time.Duration
	Now  func() time.Time
}

// Receiver takes what peers hand over. It believes no more of a peer than of an
// agent: a report is read and checked anew, by its sequence and its age among
// the rest, so a replayed one is refused. A batch is taken once, and within half
// a minute of being sent. A release is taken once, after its reservation.
type Receiver struct {
	options ReceiverOptions

	mu    sync.Mutex // batches of one sender are taken in order
	guard guard
	held  held
}

var _ http.Handler = (*Receiver)(nil)

// NewReceiver returns a Receiver that has taken nothing yet.
func NewReceiver(o ReceiverOptions) *Receiver {
	if o.Hold <= 0 {
		o.Hold = time.Minute
	}
	return &Receiver{options: o, guard: guard{}, held: newHeld(o.Hold)}
}

// ServeHTTP takes one batch. That the caller is a peer was settled before.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "a batch is posted", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, MaxBatchBytes))
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the batch can't be read to its end", status)
		return
	}
	b, err := decode(body)
	if err != nil {
		klog.FromContext(request.Context()).Error(err, "A batch of a peer was not taken")
		http.Error(w, "the batch is not one that this version takes: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := r.take(b); err != nil {
		klog.FromContext(request.Context()).Error(err, "A batch of a peer was not taken", "instance", b.From)
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer{Instance: r.options.Instance})
}

// take puts a batch into the index. Reservations come first, so that a report
// that shows their pods already takes them off again.
func (r *Receiver) take(b *batch) error {
	if b.From == r.options.Instance {
		return nil // the sender learns from the answer that it met itself
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.options.Now()
	if err := r.guard.admit(b.header, now); err != nil {
		r.options.Metrics.count(received, KindReport, refused, len(b.Reports))
		r.options.Metrics.count(received, KindReservation, refused, len(b.Reservations))
		r.options.Metrics.count(received, KindRelease, refused, len(b.Releases))
		return err
	}
	for _, message := range b.Reservations {
		r.count(KindReservation, r.reserve(b.From, message, now))
	}
	for _, message := range b.Releases {
		r.count(KindRelease, r.release(b.From, message, now))
	}
	for _, message := range b.Reports {
		r.count(KindReport, r.observe(message, now))
	}
	return nil
}

func (r *Receiver) reserve(from string, message reservation, now time.Time) bool {
	placed, wrong := message.parse()
	if wrong != nil || now.Sub(placed.At) > r.options.Hold || placed.At.Sub(now) > maxAge {
		return false
	}
	r.options.Index.Reserve(r.held.add(from, placed, now), now)
	return true
}

func (r *Receiver) release(from string, message reservation, now time.Time) bool {
	placed, wrong := message.parse()
	if wrong != nil {
		return false
	}
	placed, known := r.held.remove(from, placed, now)
	if known {
		r.options.Index.Release(placed, now)
	}
	return known
}

func (r *Receiver) observe(message report, now time.Time) bool {
	parsed, wrong := capacity.ParseReport(&message.Spec)
	if wrong == nil {
		_, wrong = r.options.Index.Observe(message.Cell, parsed, now)
	}
	return wrong == nil
}

func (r *Receiver) count(kind Kind, taken bool) {
	how := ok
	if !taken {
		how = refused
	}
	r.options.Metrics.count(received, kind, how, 1)
}
