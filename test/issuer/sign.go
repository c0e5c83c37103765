package issuer

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"strings"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// The algorithms of forgeries, for Signing.Alg.
const (
	// None is the header of a token that claims to need no signature.
	None = "none"
	// HS256 takes the PEM public key as the secret: a verifier that lets the
	// token choose the algorithm would accept it.
	HS256 = "HS256"
)

// KeyChoice is whose key signs.
type KeyChoice int

// The choices of a key.
const (
	// Current is the key that an honest token is signed with.
	Current KeyChoice = iota
	// Previous is the key before the last rotation.
	Previous
	// Unpublished is a key that the issuer never served.
	Unpublished
)

// Signing says how a token is signed. The zero value is an honest RS256 token.
type Signing struct {
	// Alg is RS256 (where empty), ES256, HS256 or None.
	Alg string
	// Key is whose key signs.
	Key KeyChoice
	// KeyID is the key id in the header; empty means the key's own.
	KeyID string
	// NoKeyID leaves the key id out.
	NoKeyID bool
	// Unsigned cuts the signature off and leaves the header as it was.
	Unsigned bool
}

// Sign returns a token with the claims. Where they say nothing else, iss is
// this issuer, iat and nbf are now and exp is in ten minutes; a claim whose
// value is nil is left out.
func (i *Issuer) Sign(claims map[string]any, how Signing) (string, error) {
	now := time.Now()
	all := map[string]any{
		"iss": i.name,
		"iat": now.Unix(),
		"nbf": now.Unix(),
		"exp": now.Add(10 * time.Minute).Unix(),
	}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	payload, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encode the claims: %w", err)
	}
	return i.SignPayload(payload, how)
}

// SignPayload returns a token with exactly this payload, which need not be
// JSON.
func (i *Issuer) SignPayload(payload []byte, how Signing) (string, error) {
	k, err := i.key(how)
	if err != nil {
		return "", err
	}
	if how.KeyID != "" {
		k.id = how.KeyID
	}
	if how.NoKeyID {
		k.id = ""
	}
	if how.Alg == None {
		return unsecured(k.id, payload)
	}
	signer, err := newSigner(k, how.Alg)
	if err != nil {
		return "", fmt.Errorf("make a signer: %w", err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	token, err := signed.CompactSerialize()
	if how.Unsigned {
		token = token[:strings.LastIndex(token, ".")+1]
	}
	return token, err
}

func (i *Issuer) key(how Signing) (key, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	from, err := i.keys.choose(how.Key)
	if err != nil {
		return key{}, err
	}
	if how.Alg == ES256 {
		return from[ES256], nil
	}
	return from[RS256], nil
}

func newSigner(k key, alg string) (jose.Signer, error) {
	options := (&jose.SignerOptions{}).WithType("JWT")
	if k.id != "" {
		options = options.WithHeader("kid", k.id)
	}
	if alg != HS256 {
		return jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(k.alg), Key: k.private}, options)
	}
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		return nil, err
	}
	secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: secret}, options)
}

// unsecured is RFC 7519's unsecured JWT, which no library would make.
func unsecured(keyID string, payload []byte) (string, error) {
	header := map[string]string{"alg": None, "typ": "JWT"}
	if keyID != "" {
		header["kid"] = keyID
	}
	h, err := json.Marshal(header)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode(h) + "." + encode(payload) + ".", nil
}
