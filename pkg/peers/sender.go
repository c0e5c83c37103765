package peers

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

const (
	// gather is how long a message waits for others to share its batch.
	gather = 50 * time.Millisecond
	// postTimeout bounds the handing over of one batch.
	postTimeout = 3 * time.Second
	// lastWords is how long a replica that ends goes on handing over.
	lastWords = time.Second
	// The pause after a failure, which doubles with each.
	firstPause, longestPause = 250 * time.Millisecond, 5 * time.Second
)

// peer is another replica, or what was said to be one. One goroutine sends, so
// its batches arrive in order.
type peer struct {
	url    string
	relay  *Relay
	outbox *outbox
	end    context.CancelFunc

	itself bool          // under the relay's lock
	pause  time.Duration // run's own: zero while the peer takes what it gets
}

func newPeer(url string, relay *Relay) *peer {
	return &peer{url: url, relay: relay, outbox: newOutbox()}
}

// put queues a message. The relay's lock is held.
func (p *peer) put(i item) {
	if !p.itself {
		p.count(p.outbox.put(i), dropped)
	}
}

// run sends what is queued until ctx is done.
func (p *peer) run(ctx context.Context) {
	for {
		select {
		case <-p.outbox.some:
		case <-ctx.Done():
			p.finish(ctx)
			return
		}
		p.wait(ctx, gather, p.outbox.full)
		if p.flush(ctx) {
			return
		}
	}
}

// flush sends until nothing is queued or ctx is done. It reports whether the
// peer turned out to be this process.
func (p *peer) flush(ctx context.Context) (itself bool) {
	for ctx.Err() == nil {
		items := p.outbox.take()
		if len(items) == 0 {
			return false
		}
		instance, err := p.send(ctx, items)
		switch {
		case err != nil:
			p.failed(ctx, items, err)
			p.wait(ctx, p.pause, nil)
		case instance == p.relay.options.Instance:
			p.relay.self(p)
			return true
		default:
			p.pause = 0
			p.count(items, ok)
		}
	}
	return false
}

// send hands over one batch. It isn't cut off when ctx ends: what becomes of it
// would be unclear.
func (p *peer) send(ctx context.Context, items []item) (instance string, err error) {
	body, err := encode(header{From: p.relay.options.Instance, Number: p.relay.numbers.next(), SentAt: time.Now().UTC()}, items)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), postTimeout)
	defer cancel()
	return p.relay.options.Post(ctx, p.url, body)
}

// failed counts what is lost with a batch whose fate is unclear, and keeps its
// reports: one that arrives twice is refused the second time.
func (p *peer) failed(ctx context.Context, items []item, err error) {
	if p.pause == 0 { // said once, until the peer takes something again
		klog.FromContext(ctx).Error(err, "A peer can't be told what this replica hears and places", "peer", p.url)
	}
	p.pause = min(max(firstPause, 2*p.pause), longestPause)
	var reports, others []item
	for _, i := range items {
		if i.kind == KindReport {
			reports = append(reports, i)
		} else {
			others = append(others, i)
		}
	}
	p.count(others, failed)
	p.count(p.outbox.putBack(reports), dropped)
}

// finish hands over what is still queued, of a replica that ends.
func (p *peer) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	for ctx.Err() == nil && p.pause == 0 {
		items := p.outbox.take()
		if len(items) == 0 {
			return
		}
		if _, err := p.send(ctx, items); err != nil {
			p.failed(ctx, items, err)
			return
		}
		p.count(items, ok)
	}
}

// count counts messages that left the outbox.
func (p *peer) count(items []item, how result) {
	for _, i := range items {
		p.relay.options.Metrics.count(sent, i.kind, how, 1)
	}
}

// wait returns after d, when early says so, or when ctx is done.
func (p *peer) wait(ctx context.Context, d time.Duration, early <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
	}
}
