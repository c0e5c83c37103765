package keyset

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

const (
	// MaxDocument is the largest key set document, in bytes.
	MaxDocument = 1 << 20
	// MaxKeys is the most keys that a document may hold.
	MaxKeys = 64
	// minRSABits is NIST SP 800-131A's least.
	minRSABits = 2048
	// maxRSABits is crypto/tls's most. To check a signature by a key of a million
	// bits takes minutes, and whoever publishes the key may want just that.
	maxRSABits = 8192
)

// Parse returns the keys of a document that can check a signature: public RSA
// keys of 2048 to 8192 bits and EC keys, unless they are marked for another
// use. Other keys are left out, as RFC 7517 section 5 asks. A document that
// isn't a key set, or is too large, is refused whole.
func Parse(document []byte) ([]jose.JSONWebKey, error) {
	if len(document) > MaxDocument {
		return nil, fmt.Errorf("the key set has more than %d bytes", MaxDocument)
	}
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &set); err != nil {
		return nil, fmt.Errorf("the key set is not JSON that can be read: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New("the document is no key set: it has no member named keys")
	}
	if len(*set.Keys) > MaxKeys {
		return nil, fmt.Errorf("the key set has %d keys, more than %d", len(*set.Keys), MaxKeys)
	}
	var keys []jose.JSONWebKey
	for _, raw := range *set.Keys {
		if isPrivate(raw) {
			continue
		}
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(raw); err != nil {
			continue
		}
		if checksSignatures(key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// isPrivate says whether it's a private key by its member d (RFC 7518 section 6).
// None is read: to see whether one of a million bits is whole takes seconds.
func isPrivate(raw json.RawMessage) bool {
	var private struct {
		D json.RawMessage `json:"d"`
	}
	return json.Unmarshal(raw, &private) == nil && private.D != nil
}

func checksSignatures(key jose.JSONWebKey) bool {
	if key.Use != "" && key.Use != "sig" {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		bits := public.N.BitLen()
		return minRSABits <= bits && bits <= maxRSABits
	case *ecdsa.PublicKey:
		return key.Valid()
	default: // symmetric and private keys among them
		return false
	}
}

// fits says whether the key is one for the algorithm.
func fits(key jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	if key.Algorithm != "" && key.Algorithm != string(alg) {
		return false
	}
	switch alg {
	case jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512:
		_, ok := key.Key.(*rsa.PublicKey)
		return ok
	case jose.ES256:
		return hasCurve(key, 256)
	case jose.ES384:
		return hasCurve(key, 384)
	case jose.ES512:
		return hasCurve(key, 521)
	default:
		return false
	}
}

func hasCurve(key jose.JSONWebKey, bits int) bool {
	public, ok := key.Key.(*ecdsa.PublicKey)
	return ok && public.Curve.Params().BitSize == bits
}

// known is a key that was published once.
type known struct {
	jose.JSONWebKey
	seenAt  time.Time // when it was last in a document
	dropped bool      // that it wasn't in the last document
}

// merge returns the keys of a new document, and those of before that it lacks;
// of these at most MaxKeys, the last seen.
func merge(before []known, published []jose.JSONWebKey, now time.Time) []known {
	var keys, dropped []known
	for _, key := range published {
		keys = append(keys, known{JSONWebKey: key, seenAt: now})
	}
	for _, k := range before {
		if !slices.ContainsFunc(published, func(p jose.JSONWebKey) bool { return same(k.JSONWebKey, p) }) {
			k.dropped = true
			dropped = append(dropped, k)
		}
	}
	slices.SortStableFunc(dropped, func(a, b known) int { return b.seenAt.Compare(a.seenAt) })
	return append(keys, dropped[:min(len(dropped), MaxKeys)]...)
}

func same(a, b jose.JSONWebKey) bool {
	if a.KeyID != b.KeyID {
		return false
	}
	switch key := a.Key.(type) {
	case *rsa.PublicKey:
		return key.Equal(b.Key)
	case *ecdsa.PublicKey:
		return key.Equal(b.Key)
	default:
		return false
	}
}
