package capacity_test

import (
	"fmt"
	"testing"
	"time"

	"cellcast.io/cellcast/pkg/capacity"
)

// BenchmarkObserve is what the hub does with a heartbeat.
func BenchmarkObserve(b *testing.B) {
	for _, cells := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("cells=%d", cells), func(b *testing.B) {
			names := make([]string, cells)
			for i := range names {
				names[i] = fmt.Sprintf("cell-%06d", i)
			}
			ix := capacity.New(capacity.Options{}, noon)
			ix.Sync(names, nil)
			s := spec(b, 1, noon, "cpu=4 memory=50 pods=20")
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now := noon.Add(time.Duration(i) * time.Millisecond)
				s.Sequence, s.ObservedAt.Time = int64(i)+1, now
				if _, refused := ix.Observe(names[i%cells], parse(b, s), now); refused != nil {
					b.Fatal(refused)
				}
			}
		})
	}
}
