package app

import (
	"errors"
	"strings"
	"testing"
)

// Zero means "without limit" to the API server where priority and fairness is off.
func TestAReplicaHasSeats(t *testing.T) {
	for sentence, change := range map[string]func(*Options){
		"none to read": func(o *Options) { o.MaxInFlight = 0 },
		"none to ask":  func(o *Options) { o.MaxMutatingInFlight = 0 },
		"less":         func(o *Options) { o.MaxMutatingInFlight = -1 },
	} {
		t.Run(sentence, func(t *testing.T) {
			const refused = "--max-mutating-requests-inflight must be 1 at least"
			o := NewOptions()
			if err := errors.Join(o.Validate()...); err != nil && strings.Contains(err.Error(), refused) {
				t.Fatalf("the defaults are refused: %v", err)
			}
			change(o)
			if err := errors.Join(o.Validate()...); err == nil || !strings.Contains(err.Error(), refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}
