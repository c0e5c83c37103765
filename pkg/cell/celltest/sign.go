package celltest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Claims are the claims of a token of the cell. Times are in seconds since 1970.
type Claims struct {
	Issuer    string   `json:"iss,omitempty"`
	Subject   string   `json:"sub,omitempty"`
	Audience  []string `json:"aud,omitempty"`
	ID        string   `json:"jti,omitempty"`
	IssuedAt  int64    `json:"iat,omitempty"`
	NotBefore int64    `json:"nbf,omitempty"`
	Expiry    int64    `json:"exp,omitempty"`
	// Kubernetes says what the token dies with.
	Kubernetes *Kubernetes `json:"kubernetes.io,omitempty"`
}

// Kubernetes is the private claim of an API server.
type Kubernetes struct {
	Secret *Bound `json:"secret,omitempty"`
}

// Bound is an object that a token is bound to.
type Bound struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Issuer is what every cell of this package calls itself, as stock clusters do.
const Issuer = "https://kubernetes.default.svc.cluster.local"

// Sign returns a token with the claims, signed by the cell (ES256).
func (c *Cell) Sign(claims Claims) string {
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: c.key, KeyID: c.keyID()}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		panic(fmt.Sprintf("celltest: %v", err))
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		panic(fmt.Sprintf("celltest: %v", err))
	}
	return token
}

// ServiceAccountClaims are the claims of a token of a ServiceAccount of the
// cell that lives for the time from now. No audience means the API server.
func (c *Cell) ServiceAccountClaims(namespace, name string, audiences []string, life time.Duration) Claims {
	if len(audiences) == 0 {
		audiences = []string{Issuer}
	}
	now := c.clock.Now()
	return Claims{
		Issuer: Issuer, Subject: "system:serviceaccount:" + namespace + ":" + name, Audience: audiences,
		ID:       "jti-" + c.name + "-" + name,
		IssuedAt: now.Unix(), NotBefore: now.Unix(), Expiry: now.Add(life).Unix(),
	}
}

// JWKS is the key set that checks the cell's tokens.
func (c *Cell) JWKS() []byte {
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: c.key.Public(), KeyID: c.keyID(), Algorithm: string(jose.ES256), Use: "sig"},
	}})
	if err != nil {
		panic(fmt.Sprintf("celltest: %v", err))
	}
	return keys
}

func (c *Cell) keyID() string { return "key-of-" + c.name }
