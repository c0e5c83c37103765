package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"

	jose "github.com/go-jose/go-jose/v4"
)

// The algorithms of a good signature.
const (
	RS256 = "RS256"
	ES256 = "ES256"
)

// pair is one generation of keys: one key for each algorithm.
type pair map[string]key

type key struct {
	id      string
	alg     string
	private crypto.Signer
}

// ring holds the generations of keys.
type ring struct {
	generation  int
	current     pair
	previous    pair // nil before the first rotation
	unpublished pair // nil until it's asked for
	served      []key
}

func newRing() (*ring, error) {
	r := &ring{}
	return r, r.rotate(false)
}

// choose returns the keys of the choice.
func (r *ring) choose(choice KeyChoice) (pair, error) {
	switch choice {
	case Current:
		return r.current, nil
	case Previous:
		if r.previous == nil {
			return nil, errors.New("there are no previous keys: rotate first")
		}
		return r.previous, nil
	case Unpublished:
		if r.unpublished == nil {
			var err error
			if r.unpublished, err = newPair("unpublished"); err != nil {
				return nil, err
			}
		}
		return r.unpublished, nil
	default:
		return nil, fmt.Errorf("there is no key choice %d", choice)
	}
}

func (r *ring) rotate(keep bool) error {
	next, err := newPair(fmt.Sprintf("key-%d", r.generation+1))
	if err != nil {
		return err
	}
	r.generation++
	r.previous, r.current = r.current, next
	if !keep {
		r.served = nil
	}
	r.served = append(r.served, next[RS256], next[ES256])
	return nil
}

func (r *ring) published() jose.JSONWebKeySet {
	var set jose.JSONWebKeySet
	for _, k := range r.served {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: k.alg, Use: "sig"})
	}
	return set
}

func newPair(name string) (pair, error) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return pair{
		RS256: {id: name + "-rsa", alg: RS256, private: rsaKey},
		ES256: {id: name + "-ec", alg: ES256, private: ecKey},
	}, nil
}
