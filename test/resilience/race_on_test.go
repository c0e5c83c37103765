//go:build race

package resilience

// wantedRate is what two cores sustain where each placement costs its client four
// times as much, and a cell that comes back is asked by all who waited for it.
const wantedRate = 25
