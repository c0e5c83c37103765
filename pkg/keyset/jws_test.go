package keyset

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	jose "github.com/go-jose/go-jose/v4"
)

func TestVerifySignature(t *testing.T) {
	ec, other := newKey(t, "ec"), newKey(t, "ec")
	rsaPrivate, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey := signingKey{id: "rsa", alg: jose.RS256, private: rsaPrivate}
	der, err := x509.MarshalPKIXPublicKey(rsaPrivate.Public())
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	var same []signingKey
	for range 5 {
		same = append(same, newKey(t, "same"))
	}
	parts := strings.Split(ec.token(t), ".")
	embedded, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: other.private}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		t.Fatal(err)
	}
	bringsItsKey, err := embedded.Sign([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	compact, err := bringsItsKey.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}

	tests := map[string]struct {
		published []signingKey
		token     string
		want      error
	}{
		"accepts an ES256 signature": {[]signingKey{ec, rsaKey}, ec.token(t), nil},
		"accepts an RS256 signature": {[]signingKey{ec, rsaKey}, rsaKey.token(t), nil},
		"accepts a token without key id when one key alone fits": {
			[]signingKey{ec, rsaKey}, sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: ec.private}, nil), nil},
		"refuses a token without key id when two keys fit": {
			[]signingKey{ec, newKey(t, "ec2")}, sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: ec.private}, nil), ErrUnknownKey},
		"accepts one of two keys with the same id": {[]signingKey{other, ec}, ec.token(t), nil},
		"accepts the fourth key with the same id":  {same, same[3].token(t), nil},
		"tries no fifth key with the same id":      {same, same[4].token(t), ErrSignature},
		"refuses another key under a known id":     {[]signingKey{ec}, other.token(t), ErrSignature},
		"refuses a key that comes in the token":    {[]signingKey{ec, rsaKey}, compact, ErrSignature},
		"refuses another algorithm than the key's": {
			[]signingKey{rsaKey}, sign(t, jose.SigningKey{Algorithm: jose.PS256, Key: rsaPrivate}, map[jose.HeaderKey]any{"kid": "rsa"}), ErrUnknownKey},
		"refuses the public key as a shared secret": {
			[]signingKey{rsaKey}, sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: publicPEM}, map[jose.HeaderKey]any{"kid": "rsa"}), ErrAlgorithm},
		"refuses alg none":               {[]signingKey{ec}, encode(`{"alg":"none","kid":"ec"}`) + "." + parts[1] + ".", ErrAlgorithm},
		"refuses a cut-off signature":    {[]signingKey{ec}, parts[0] + "." + parts[1] + ".", ErrSignature},
		"refuses a changed payload":      {[]signingKey{ec}, parts[0] + "." + encode(`{"sub":"b"}`) + "." + parts[2], ErrSignature},
		"refuses two parts":              {[]signingKey{ec}, parts[0] + "." + parts[1], ErrMalformed},
		"refuses four parts":             {[]signingKey{ec}, ec.token(t) + ".x", ErrMalformed},
		"refuses the JSON serialisation": {[]signingKey{ec}, `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, ErrMalformed},
		"refuses an empty token":         {[]signingKey{ec}, "", ErrMalformed},
		"refuses a header given twice":   {[]signingKey{ec}, encode(`{"alg":"none","alg":"ES256","kid":"ec"}`) + "." + parts[1] + "." + parts[2], ErrMalformed},
		"refuses a critical header": {
			[]signingKey{ec}, encode(`{"alg":"ES256","kid":"ec","crit":["b64"],"b64":false}`) + "." + parts[1] + "." + parts[2], ErrMalformed},
		"refuses a token over 16 KiB": {[]signingKey{ec}, ec.token(t) + strings.Repeat("A", MaxToken), ErrMalformed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &publisher{}
			p.publish(tc.published...)
			payload, err := New(p.fetch, Options{}).VerifySignature(t.Context(), tc.token)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got error %v, want %v", err, tc.want)
			}
			if tc.want == nil && string(payload) != `{"sub":"a"}` {
				t.Errorf("payload %s", payload)
			}
			if tc.want != nil && payload != nil {
				t.Errorf("a refused token yielded the payload %s", payload)
			}
		})
	}
}

func TestMalformedTokenReadsNoKeys(t *testing.T) {
	p := &publisher{}
	s := New(p.fetch, Options{})
	for _, token := range []string{"", "a.b.c", strings.Repeat("A", MaxToken+1), "eyJhbGciOiJub25lIn0.e30."} {
		if _, err := s.VerifySignature(t.Context(), token); err == nil {
			t.Errorf("%.20q was accepted", token)
		}
	}
	if got := p.count(); got != 0 {
		t.Errorf("%d reads, want 0", got)
	}
}
