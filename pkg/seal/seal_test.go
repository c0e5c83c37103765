package seal

import (
	"crypto/ecdsa"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln"

func newKey(t *testing.T) *Key {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sealTo(t *testing.T, key *Key) string {
	t.Helper()
	recipient, refused := ParseRecipient("spec.recipient", *key.Recipient())
	if refused != nil {
		t.Fatal(refused)
	}
	sealed, err := recipient.Seal(token)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestOnlyTheRecipientOpens(t *testing.T) {
	key := newKey(t)
	sealed := sealTo(t, key)
	if opened, err := key.Open(sealed); err != nil || opened != token {
		t.Errorf("got %q, %v", opened, err)
	}
	for _, part := range strings.Split(token, ".") {
		if strings.Contains(sealed, part) {
			t.Errorf("the sealed token shows %q", part)
		}
	}
	if opened, err := newKey(t).Open(sealed); err == nil {
		t.Errorf("another key opens it: %q", opened)
	}
	if sealTo(t, key) == sealed {
		t.Error("two seals of one token are equal, so that a recorder sees that it's the same")
	}
}

func TestOpenKnowsOneAlgorithm(t *testing.T) {
	key := newKey(t)
	with := func(alg jose.KeyAlgorithm, enc jose.ContentEncryption, k any) string {
		encrypter, err := jose.NewEncrypter(enc, jose.Recipient{Algorithm: alg, Key: k}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := encrypter.Encrypt([]byte(token))
		if err != nil {
			t.Fatal(err)
		}
		compact, err := sealed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return compact
	}
	good := sealTo(t, key)
	flipped := []byte(good)
	flipped[len(flipped)-30] ^= 1
	for sentence, sealed := range map[string]string{
		"another content encryption": with(jose.ECDH_ES, jose.A128GCM, &key.key.PublicKey),
		"a wrapped key":              with(jose.ECDH_ES_A256KW, jose.A256GCM, &key.key.PublicKey),
		"a symmetric key":            with(jose.DIRECT, jose.A256GCM, make([]byte, 32)),
		"a token in the clear":       token,
		"a changed byte":             string(flipped),
		"half of it":                 good[:len(good)/2],
		"nothing":                    "",
		"far too much":               strings.Repeat("a", MaxSealed+1),
	} {
		t.Run(sentence, func(t *testing.T) {
			opened, err := key.Open(sealed)
			if err == nil {
				t.Fatalf("it opens: %q", opened)
			}
			if sealed != "" && strings.Contains(err.Error(), sealed) {
				t.Errorf("the error quotes what was sealed: %v", err)
			}
		})
	}
}

func TestParseRecipientTakesAPointOfP256(t *testing.T) {
	good := *newKey(t).Recipient()
	change := func(f func(*v1alpha1.Recipient)) v1alpha1.Recipient {
		r := good
		f(&r)
		return r
	}
	zero := strings.Repeat("A", 43)
	for sentence, tt := range map[string]struct {
		recipient v1alpha1.Recipient
		field     string
	}{
		"RSA":                   {change(func(r *v1alpha1.Recipient) { r.KeyType = "RSA" }), "spec.recipient.kty"},
		"nothing":               {v1alpha1.Recipient{}, "spec.recipient.kty"},
		"another curve":         {change(func(r *v1alpha1.Recipient) { r.Curve = "P-384" }), "spec.recipient.crv"},
		"a longer coordinate":   {change(func(r *v1alpha1.Recipient) { r.X = zero + zero }), "spec.recipient.x"},
		"a coordinate missing":  {change(func(r *v1alpha1.Recipient) { r.Y = "" }), "spec.recipient.y"},
		"base64 with padding":   {change(func(r *v1alpha1.Recipient) { r.X += "=" }), "spec.recipient.x"},
		"not on the curve":      {change(func(r *v1alpha1.Recipient) { r.Y = r.X }), "spec.recipient"},
		"the point at infinity": {change(func(r *v1alpha1.Recipient) { r.X, r.Y = zero, zero }), "spec.recipient"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, refused := ParseRecipient("spec.recipient", tt.recipient)
			switch {
			case refused == nil:
				t.Error("it was taken")
			case refused.Field != tt.field:
				t.Errorf("refused for %s, want %s", refused.Field, tt.field)
			}
		})
	}
}

// What the client sends must be what any JOSE library calls a public JWK.
func TestARecipientIsAJWK(t *testing.T) {
	key := newKey(t)
	wire, err := json.Marshal(key.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	var jwk jose.JSONWebKey
	if err := json.Unmarshal(wire, &jwk); err != nil {
		t.Fatal(err)
	}
	if public, ok := jwk.Key.(*ecdsa.PublicKey); !ok || !public.Equal(&key.key.PublicKey) || !jwk.IsPublic() {
		t.Errorf("%s is read as %T", wire, jwk.Key)
	}
}
