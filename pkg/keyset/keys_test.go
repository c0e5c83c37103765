package keyset

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	jose "github.com/go-jose/go-jose/v4"
)

func TestParse(t *testing.T) {
	good := jwk(t, newKey(t, "good").public())
	encryption := newKey(t, "encryption").public()
	encryption.Use = "enc"
	unmarked := newKey(t, "unmarked").public()
	unmarked.Use, unmarked.Algorithm = "", ""
	private := jose.JSONWebKey{Key: newKey(t, "").private, KeyID: "private", Use: "sig"}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}

	tests := map[string]struct {
		document string
		want     []string // ids of the keys
		err      string
	}{
		"takes a signature key":              {`{"keys":[` + good + `]}`, []string{"good"}, ""},
		"takes a key that says nothing":      {`{"keys":[` + jwk(t, unmarked) + `]}`, []string{"unmarked"}, ""},
		"leaves out an encryption key":       {`{"keys":[` + jwk(t, encryption) + `,` + good + `]}`, []string{"good"}, ""},
		"leaves out a symmetric key":         {`{"keys":[{"kty":"oct","kid":"s","k":"c2VjcmV0"},` + good + `]}`, []string{"good"}, ""},
		"leaves out a private key":           {`{"keys":[` + jwk(t, private) + `,` + good + `]}`, []string{"good"}, ""},
		"leaves out an RSA key of 1024 bits": {`{"keys":[` + jwk(t, jose.JSONWebKey{Key: weak.Public(), KeyID: "weak"}) + `,` + good + `]}`, []string{"good"}, ""},
		"takes an RSA key of 8192 bits":      {`{"keys":[` + jwk(t, rsaOf(8192)) + `]}`, []string{"8192"}, ""},
		"leaves out an RSA key of 8193 bits": {`{"keys":[` + jwk(t, rsaOf(8193)) + `,` + good + `]}`, []string{"good"}, ""},
		"leaves out a kind of key of later":  {`{"keys":[{"kty":"AKP","kid":"pq"},` + good + `]}`, []string{"good"}, ""},
		"leaves out a key that is broken":    {`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},7,` + good + `]}`, []string{"good"}, ""},
		"takes a set without keys":           {`{"keys":[]}`, nil, ""},
		"refuses a document without keys":    {`{}`, nil, "the document is no key set: it has no member named keys"},
		"refuses more than 64 keys": {`{"keys":[` + strings.Repeat(good+",", 64) + good + `]}`, nil,
			"the key set has 65 keys, more than 64"},
		"refuses more than 1 MiB": {`{"keys":[]}` + strings.Repeat(" ", MaxDocument), nil,
			"the key set has more than 1048576 bytes"},
		"refuses what isn't JSON": {`<html>`, nil,
			"the key set is not JSON that can be read: invalid character '<' looking for beginning of value"},
		"refuses keys given twice": {`{"keys":[],"keys":[]}`, nil,
			"the key set is not JSON that can be read: json: duplicate key 'keys' in object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			keys, err := Parse([]byte(tc.document))
			var got []string
			for _, k := range keys {
				got = append(got, k.KeyID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if text := fmt.Sprint(err); (tc.err != "" || err != nil) && text != tc.err {
				t.Errorf("error %q, want %q", text, tc.err)
			}
		})
	}
}

// To see whether a private key is whole takes seconds where it has a million bits.
func TestParseReadsNoPrivateKey(t *testing.T) {
	text := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	prime := new(big.Int).Lsh(big.NewInt(1), 500_000) // or so
	prime.SetBit(prime, 0, 1)
	n := new(big.Int).Mul(prime, prime)
	document := fmt.Sprintf(`{"keys":[{"kty":"RSA","kid":"a","n":%q,"e":"AQAB","d":%q,"p":%q,"q":%q}]}`,
		text(n), text(n), text(prime), text(prime))
	began := time.Now()
	keys, err := Parse([]byte(document))
	if len(keys) != 0 || err != nil {
		t.Errorf("got %d keys, %v", len(keys), err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestMergeIsBounded(t *testing.T) {
	var keys []known
	for round := range 200 {
		published := []jose.JSONWebKey{newKey(t, fmt.Sprint(round)).public()}
		keys = merge(keys, published, time.Unix(0, 0))
	}
	if got, want := len(keys), 1+MaxKeys; got != want {
		t.Errorf("%d keys are kept, want %d", got, want)
	}
}

// rsaOf is a public key of so many bits, which nobody has the private one of.
func rsaOf(bits int) jose.JSONWebKey {
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
	return jose.JSONWebKey{Key: &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537}, KeyID: fmt.Sprint(bits)}
}

func jwk(t *testing.T, key jose.JSONWebKey) string {
	t.Helper()
	b, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
