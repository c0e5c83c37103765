package target

import (
	"sync"

	"cellcast.io/cellcast/pkg/refusal"
)

// turnsOfANamespace is how many tokens are issued at once for the targets of one
// namespace. Its owner chose the servers that are asked, and can ask as every
// ServiceAccount that they make there: slow ones must leave room for others.
const turnsOfANamespace = 6

// turns counts what is under way. The zero turns are ready.
type turns struct {
	mu    sync.Mutex
	under map[string]int // by namespace; those with any
}

// take takes a turn of the namespace, to be given back.
func (t *turns) take(namespace string) *refusal.Refusal {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.under[namespace] >= turnsOfANamespace {
		return refusal.New(refusal.RateLimited, "%d tokens are being issued already for targets of namespace %s, as many as may be at once", turnsOfANamespace, namespace)
	}
	if t.under == nil {
		t.under = map[string]int{}
	}
	t.under[namespace]++
	return nil
}

func (t *turns) giveBack(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.under[namespace]--; t.under[namespace] == 0 {
		delete(t.under, namespace)
	}
}
