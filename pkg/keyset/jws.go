package keyset

import (
	"errors"

	jose "github.com/go-jose/go-jose/v4"
)

// MaxToken is the longest token that is looked at, in bytes.
const MaxToken = 16 << 10

// The refusals of a token.
var (
	ErrMalformed   = errors.New("the token is not a compact JWT of at most 16 KiB")
	ErrAlgorithm   = errors.New("the token is not signed by an asymmetric algorithm that is accepted")
	ErrSignature   = errors.New("the token's signature is missing or wrong")
	ErrUnknownKey  = errors.New("the token is signed by a key that its issuer doesn't publish")
	ErrUnavailable = errors.New("the issuer's keys can't be read")
)

// algorithms are those that Kubernetes accepts in a JWT, all asymmetric.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512,
		jose.ES256, jose.ES384, jose.ES512,
		jose.PS256, jose.PS384, jose.PS512,
	}
}

// Algorithms are those that a token may be signed by.
func Algorithms() []string {
	var names []string
	for _, alg := range algorithms() {
		names = append(names, string(alg))
	}
	return names
}

// Unverified returns the payload of a token that nobody has checked. It is for
// choosing whose keys to check it by, and for turning a token away.
func Unverified(token string) ([]byte, error) {
	jws, err := parse(token)
	if err != nil {
		return nil, err
	}
	return jws.UnsafePayloadWithoutVerification(), nil
}

// parse reads the compact serialisation, the only one that a JWT has (RFC 7519
// section 1). Critical headers are refused: none is known here, and the one
// that the library knows, b64, is forbidden in a JWT (RFC 7797 section 7).
func parse(token string) (*jose.JSONWebSignature, error) {
	if len(token) > MaxToken {
		return nil, ErrMalformed
	}
	jws, err := jose.ParseSignedCompact(token, algorithms())
	var alg *jose.ErrUnexpectedSignatureAlgorithm
	switch {
	case errors.As(err, &alg):
		return nil, ErrAlgorithm
	case err != nil || len(jws.Signatures) != 1:
		return nil, ErrMalformed
	case len(jws.Signatures[0].Signature) == 0:
		return nil, ErrSignature
	}
	if _, critical := jws.Signatures[0].Protected.ExtraHeaders["crit"]; critical {
		return nil, ErrMalformed
	}
	return jws, nil
}

// maxCandidates is how many keys of one id are tried. There should be one (RFC 7517
// section 4.5), and one more where the issuer has put another in its place; each
// costs up to 3 ms, and who publishes a hundred may want just that.
const maxCandidates = 4

// verify returns the payload if one of the keys with the token's key id and
// algorithm signed it; of many it tries the first, and dropped ones are last. A
// token that names no key must leave no choice (OpenID Connect Core section 10.1).
func verify(jws *jose.JSONWebSignature, keys []jose.JSONWebKey) ([]byte, error) {
	header := jws.Signatures[0].Protected
	var candidates []jose.JSONWebKey
	for _, key := range keys {
		if header.KeyID != "" && key.KeyID != header.KeyID {
			continue
		}
		if fits(key, jose.SignatureAlgorithm(header.Algorithm)) {
			candidates = append(candidates, key)
		}
	}
	if len(candidates) == 0 || header.KeyID == "" && len(candidates) > 1 {
		return nil, ErrUnknownKey
	}
	for _, key := range candidates[:min(len(candidates), maxCandidates)] {
		if payload, err := jws.Verify(key); err == nil {
			return payload, nil
		}
	}
	return nil, ErrSignature
}
