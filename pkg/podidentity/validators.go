package podidentity

import (
	"fmt"
	"sync"

	"cellcast.io/cellcast/pkg/keyset"
)

// Sources are the ways to the registered targets and cells. Each is asked once
// per connection, and looks its client up when it's used.
type Sources interface {
	// Keys returns how the target's /openid/v1/jwks is read, with its registered
	// credential.
	Keys(target Registration) keyset.Fetch
	// Reviewer returns the cell, as the hub may ask it.
	Reviewer(cell Registration) Reviewer
}

// Validators has a validator for each target and mode. It's safe for use by
// many at once.
type Validators struct {
	sources Sources

	mu      sync.Mutex
	entries map[Target]entry
}

// entry is a validator and what it was made for.
type entry struct {
	registration Registration
	validator    Validator
	keys         *keyset.Set // of ModeJWKS
}

// New returns Validators that have read and asked nothing yet.
func New(sources Sources) *Validators {
	return &Validators{sources: sources, entries: map[Target]entry{}}
}

// For returns the validator of the target, the same one as long as its
// registration stays the same. The keys that were read, and the cooldown before
// they're read again, outlast any change but one of endpoint or CA. The error
// says what the registration lacks.
func (v *Validators) For(r Registration) (Validator, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.entries[r.Target]
	if ok && known.registration == r {
		return known.validator, nil
	}
	made := entry{registration: r}
	switch r.Target.Mode {
	case ModeJWKS:
		made.keys = known.keys
		if !ok || known.registration.Endpoint != r.Endpoint || known.registration.CABundle != r.CABundle {
			made.keys = keyset.New(v.sources.Keys(r), keyset.Options{})
		}
		made.validator = &jwks{registration: r, keys: made.keys}
	case ModeTokenReview:
		made.validator = newTokenReview(r, v.sources.Reviewer(r))
	default:
		return nil, fmt.Errorf("pods of %s can't be proven: there is no mode %q", r.Target.UID, r.Target.Mode)
	}
	v.entries[r.Target] = made
	return made.validator, nil
}

// Forget drops what is known of a target that is gone.
func (v *Validators) Forget(t Target) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.entries, t)
}
