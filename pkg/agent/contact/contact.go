// Package contact tells whether a watch on the cell is alive.
package contact

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Contact knows whether a watch on the cell is open, and when the last one
// ended. An informer alone doesn't tell: it serves its old store for as long
// as it can't reach the API server, or may no longer read.
//
// That an open watch is alive is the transport's care: client-go's HTTP/2
// health check ends one that is dead within 45 seconds.
// The zero value has never been in touch.
type Contact struct {
	mu   sync.Mutex
	open int
	last time.Time
}

// Touch notes that the API server has just answered.
func (c *Contact) Touch(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = now
}

// LostFor is for how long no watch has been open: zero when one is.
func (c *Contact) LostFor(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open > 0 {
		return 0
	}
	return now.Sub(c.last)
}

// Hold counts w as open until it's stopped, which a reflector always does.
func (c *Contact) Hold(w watch.Interface) watch.Interface {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	return &held{Interface: w, end: sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open--
		c.last = time.Now()
	})}
}

type held struct {
	watch.Interface
	end func()
}

func (h *held) Stop() {
	h.Interface.Stop()
	h.end()
}
