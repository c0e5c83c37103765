package keyset

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

// publisher is an issuer's key set document in memory: it can be slow, be
// unreachable and change.
type publisher struct {
	mu    sync.Mutex
	keys  []jose.JSONWebKey
	down  bool
	delay time.Duration
	reads int
}

func (p *publisher) fetch(ctx context.Context) ([]byte, error) {
	p.mu.Lock()
	p.reads++
	document, err := json.Marshal(jose.JSONWebKeySet{Keys: append([]jose.JSONWebKey{}, p.keys...)})
	delay, down := p.delay, p.down
	p.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if down {
		return nil, errors.New("connection refused")
	}
	return document, err
}

func (p *publisher) publish(keys ...signingKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = nil
	for _, k := range keys {
		p.keys = append(p.keys, k.public())
	}
}

func (p *publisher) set(down bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down, p.delay = down, delay
}

func (p *publisher) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

type signingKey struct {
	id      string
	alg     jose.SignatureAlgorithm
	private crypto.Signer
}

func (k signingKey) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: string(k.alg), Use: "sig"}
}

func newKey(t testing.TB, id string) signingKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signingKey{id: id, alg: jose.ES256, private: private}
}

// token is a token that the key signs, with the key's id.
func (k signingKey) token(t testing.TB) string {
	t.Helper()
	return sign(t, jose.SigningKey{Algorithm: k.alg, Key: k.private}, map[jose.HeaderKey]any{"kid": k.id})
}

func sign(t testing.TB, key jose.SigningKey, headers map[jose.HeaderKey]any) string {
	t.Helper()
	signer, err := jose.NewSigner(key, &jose.SignerOptions{ExtraHeaders: headers})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(`{"sub":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
