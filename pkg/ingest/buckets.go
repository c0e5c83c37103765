package ingest

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

// buckets have a token bucket for each key, of the keys that were used last. One
// that is pushed out begins anew: what must hold against a flood of keys rests on
// a bucket of few keys behind it.
type buckets struct {
	limit rate.Limit // 0 is no bound
	burst int

	mu    sync.Mutex
	known *lru.Cache // *rate.Limiter by key
}

func newBuckets(perSecond float64, most int) *buckets {
	return &buckets{
		limit: rate.Limit(max(perSecond, 0)),
		burst: int(max(1, math.Ceil(2*perSecond))),
		known: lru.New(most),
	}
}

// allow takes one from the key's bucket.
func (b *buckets) allow(key any, now time.Time) bool {
	if b.limit == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.known.Get(key)
	if !ok {
		known = rate.NewLimiter(b.limit, b.burst)
		b.known.Add(key, known)
	}
	return known.(*rate.Limiter).AllowN(now, 1)
}
