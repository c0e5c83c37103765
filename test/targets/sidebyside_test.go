package targets

import (
	"sync"
	"testing"
)

// beside is a subtest that mostly waits.
type beside struct {
	sentence string
	test     func(*testing.T)
}

// sideBySide runs subtests so many at once as it's told, the first ones first: how
// many processors there are says nothing of how many can wait.
func sideBySide(t *testing.T, atOnce int, tests []beside) {
	t.Helper()
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, each := range tests {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			t.Run(each.sentence, each.test)
		})
	}
	all.Wait()
}
