package mirror

import (
	"encoding/json"
	"errors"
)

// metadata is what a discovery document has of OpenID Connect Discovery 1.0
// that a cell needs. Nothing else is passed on.
type metadata struct {
	Issuer        string   `json:"issuer"`
	JWKSURI       string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	SigningAlgs   []string `json:"id_token_signing_alg_values_supported"`
}

// discovery passes a discovery document on with the mirror's own jwks_uri. The
// issuer is the hub's: tokens have it in them, and cells compare the two.
func discovery(raw []byte, jwksURI string) ([]byte, error) {
	var m metadata
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, errors.New("the discovery document of the hub's API server isn't JSON of the expected shape")
	}
	if m.Issuer == "" {
		return nil, errors.New("the discovery document of the hub's API server names no issuer")
	}
	m.JWKSURI = jwksURI
	return json.Marshal(m)
}

// key is a public key by RFC 7517 and 7518, sections 6.2.1 and 6.3.1. It has no
// member that a private key would have.
type key struct {
	KeyType   string `json:"kty"`
	KeyID     string `json:"kid,omitempty"`
	Use       string `json:"use,omitempty"`
	Algorithm string `json:"alg,omitempty"`
	Modulus   string `json:"n,omitempty"`
	Exponent  string `json:"e,omitempty"`
	Curve     string `json:"crv,omitempty"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
}

// keySet passes a key set on, public members alone. One without keys is refused:
// a cell that took it would forget the keys that it has.
func keySet(raw []byte) ([]byte, error) {
	var set struct {
		Keys []key `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, errors.New("the key set of the hub's API server isn't JSON of the expected shape")
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("the key set of the hub's API server has no keys")
	}
	for _, k := range set.Keys {
		if k.KeyType != "RSA" && k.KeyType != "EC" && k.KeyType != "OKP" {
			return nil, errors.New("the key set of the hub's API server has a key that isn't a public one of a known type")
		}
	}
	return json.Marshal(set)
}
