// Package seal closes a token into a JWE that only the holder of one private
// key can open. The hub seals, the client opens, and both know one algorithm:
// ECDH-ES on P-256 with A256GCM (RFC 7518, sections 4.6 and 5.3). There is no
// other, so nobody can talk either side into a weaker one.
//
// It protects a token from whoever records the answer that it travels in. It
// doesn't protect from one who changes the question on its way, and puts a key
// of his own into it.
package seal

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

const (
	keyType = "EC"
	curve   = "P-256"
	// coordinate is the length of a coordinate, in bytes.
	coordinate = 32
	// uncompressed begins a point with both of them (SEC 1, section 2.3.3).
	uncompressed = 4
	// MaxSealed is the most bytes of a JWE that Open reads.
	MaxSealed = 64 << 10
)

// Recipient is a public key that can be sealed to.
type Recipient struct{ key *ecdsa.PublicKey }

// ParseRecipient reads the public key of a request. It refuses, with
// InvalidRequest under the path field, everything but a point of P-256.
func ParseRecipient(field string, r v1alpha1.Recipient) (Recipient, *refusal.Refusal) {
	switch {
	case r.KeyType != keyType:
		return Recipient{}, refusal.Invalid(field+".kty", "must be %s: a credential is sealed to an elliptic curve key on %s alone", keyType, curve)
	case r.Curve != curve:
		return Recipient{}, refusal.Invalid(field+".crv", "must be %s", curve)
	}
	x, refused := parseCoordinate(field+".x", r.X)
	if refused != nil {
		return Recipient{}, refused
	}
	y, refused := parseCoordinate(field+".y", r.Y)
	if refused != nil {
		return Recipient{}, refused
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{uncompressed}, x, y))
	if err != nil {
		return Recipient{}, refusal.Invalid(field, "is no point of %s: make the key anew", curve)
	}
	return Recipient{key}, nil
}

func parseCoordinate(field, text string) ([]byte, *refusal.Refusal) {
	value, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(value) != coordinate {
		return nil, refusal.Invalid(field, "must be %d bytes in base64url without padding", coordinate)
	}
	return value, nil
}

// Seal returns the token as a JWE in compact form.
func (r Recipient) Seal(token string) (string, error) {
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.ECDH_ES, Key: r.key}, nil)
	if err != nil {
		return "", fmt.Errorf("seal a token: %w", err)
	}
	sealed, err := encrypter.Encrypt([]byte(token))
	if err != nil {
		return "", fmt.Errorf("seal a token: %w", err)
	}
	return sealed.CompactSerialize()
}

// Key is a private key, for the answers to one run's questions.
type Key struct {
	key   *ecdsa.PrivateKey
	point []byte // the public half, x before y
}

// NewKey returns a new key.
func NewKey() (*Key, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key to open the credential with: %w", err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("make a key to open the credential with: %w", err)
	}
	return &Key{key, point[1:]}, nil
}

// Recipient is the public half, as a request carries it.
func (k *Key) Recipient() *v1alpha1.Recipient {
	x, y := k.point[:coordinate], k.point[coordinate:]
	return &v1alpha1.Recipient{KeyType: keyType, Curve: curve,
		X: base64.RawURLEncoding.EncodeToString(x), Y: base64.RawURLEncoding.EncodeToString(y)}
}

// Open returns the token in a JWE that was sealed to this key. The error quotes
// nothing of it.
func (k *Key) Open(sealed string) (string, error) {
	if len(sealed) > MaxSealed {
		return "", fmt.Errorf("the sealed token is longer than %d bytes", MaxSealed)
	}
	parsed, err := jose.ParseEncryptedCompact(sealed, []jose.KeyAlgorithm{jose.ECDH_ES}, []jose.ContentEncryption{jose.A256GCM})
	if err != nil {
		return "", errors.New("the sealed token is no JWE by ECDH-ES and A256GCM in compact form")
	}
	token, err := parsed.Decrypt(k.key)
	if err != nil {
		return "", errors.New("the sealed token isn't sealed to this key: something on the way to the hub may have put in its own")
	}
	return string(token), nil
}
