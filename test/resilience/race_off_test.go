//go:build !race

package resilience

// wantedRate is how many placements shall begin each second.
const wantedRate = 100
