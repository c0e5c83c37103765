// Package peers lets the replicas of a hub rank the fleet alike: each hands what
// it hears and places to every other, ready or not.
//
// An agent keeps its connection, so its reports reach one replica and the
// others would know its cell as Unknown; and each replica holds room only for
// what it placed itself. So a report, a reservation and a release are handed
// over, in batches, some 50 ms after they happened.
//
// It is best effort, and nobody waits for it. There is no agreement between
// replicas: each keeps its own index and checks everything anew. Of what can't
// be handed over, the newest report of each cell is tried again; a reservation
// isn't, because the peer may have taken it, and ends by itself anyway. A queue
// that is full loses its oldest. Everything lost is counted.
//
// A Relay sends and a Receiver takes. Who the peers are is a Source's to say,
// and whether the other side is one is settled before a request gets here.
package peers

import (
	"context"
	"encoding/json"
	"sync"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// Post hands a batch to the peer at the URL and returns the instance that
// answered.
type Post func(ctx context.Context, url string, batch []byte) (instance string, err error)

// Source tells who the peers are, as https URLs of their direct doors, whenever
// that changes. It returns when ctx is done, or with the error that keeps it
// from ever knowing.
type Source func(ctx context.Context, set func(urls []string)) error

// Options are what a Relay needs.
type Options struct {
	// Instance is the id of this process, which no other has had.
	Instance string
	Post     Post
	Metrics  *Metrics
}

// Relay hands over to the peers. Its methods Report, Reserve and Release don't
// block, and do nothing on a nil Relay or without peers.
type Relay struct {
	options Options
	numbers numbers

	mu    sync.RWMutex
	peers map[string]*peer // by URL
}

// New returns a Relay that knows no peers yet.
func New(o Options) *Relay {
	return &Relay{options: o, peers: map[string]*peer{}}
}

// Run hands over until ctx is done, and then what is still queued, for a second
// at most.
func (r *Relay) Run(ctx context.Context, source Source) error {
	ctx, cancel := context.WithCancel(ctx)
	var senders sync.WaitGroup
	defer senders.Wait()
	defer cancel()
	return source(ctx, func(urls []string) { r.set(ctx, &senders, urls) })
}

// Report hands over a report that this replica took.
func (r *Relay) Report(cell string, spec v1alpha1.CellCapacitySpec) {
	r.queue(KindReport, cell, func() any { return report{Cell: cell, Spec: spec} })
}

// Reserve hands over what this replica placed.
func (r *Relay) Reserve(placed capacity.Reservation) {
	r.queue(KindReservation, "", func() any { return wireReservation(placed) })
}

// Release hands over that nothing will come of a reservation. The peer releases
// only what it was told to reserve, and that once.
func (r *Relay) Release(placed capacity.Reservation) {
	r.queue(KindRelease, "", func() any { return wireReservation(placed) })
}

// queue encodes the message once and puts it into each peer's outbox.
func (r *Relay) queue(kind Kind, cell string, message func() any) {
	if r == nil {
		return
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.peers) == 0 {
		return
	}
	encoded, err := json.Marshal(message())
	if err != nil || len(encoded) > maxItemBytes {
		r.options.Metrics.count(sent, kind, dropped, len(r.peers))
		return
	}
	for _, p := range r.peers {
		p.put(item{kind: kind, cell: cell, json: encoded})
	}
}

// set makes these the peers. One that stays keeps its queue.
func (r *Relay) set(ctx context.Context, senders *sync.WaitGroup, urls []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[string]*peer{}
	for _, url := range urls {
		p, known := r.peers[url]
		if !known && wanted[url] == nil {
			p = newPeer(url, r)
			own, end := context.WithCancel(ctx)
			p.end = end
			senders.Go(func() { defer end(); p.run(own) })
		}
		if p != nil {
			wanted[url] = p
		}
	}
	for url, p := range r.peers {
		if wanted[url] == nil {
			p.end()
		}
	}
	r.peers = wanted
	r.countPeers()
}

// self takes a peer that turned out to be this very process out of service. It
// stays in the map, so that its URL isn't tried again.
func (r *Relay) self(p *peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.itself = true
	p.outbox.clear()
	r.countPeers()
}

func (r *Relay) countPeers() {
	others := 0
	for _, p := range r.peers {
		if !p.itself {
			others++
		}
	}
	r.options.Metrics.peers.Set(float64(others))
}
