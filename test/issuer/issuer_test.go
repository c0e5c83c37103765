package issuer

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

func start(t *testing.T, o Options) (*Issuer, *http.Client) {
	t.Helper()
	i, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(i.CA())
	return i, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 10 * time.Second}
}

func get(t *testing.T, client *http.Client, url string, into any) *http.Response {
	t.Helper()
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
	return response
}

// published reads the key set as a relying party does.
func published(t *testing.T, i *Issuer, client *http.Client) jose.JSONWebKeySet {
	t.Helper()
	var document struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	get(t, client, i.URL()+"/.well-known/openid-configuration", &document)
	if document.Issuer != i.URL() {
		t.Errorf("the document is of issuer %q, want %q", document.Issuer, i.URL())
	}
	var set jose.JSONWebKeySet
	get(t, client, document.Keys, &set)
	return set
}

func verifies(token string, set jose.JSONWebKeySet) error {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil {
		return err
	}
	return parsed.Claims(set, &jwt.Claims{})
}

func TestKeysRotate(t *testing.T) {
	i, client := start(t, Options{Path: "/ci/"})
	sign := func(how Signing) string {
		t.Helper()
		token, err := i.Sign(map[string]any{"sub": "a"}, how)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	check := func(when string, how Signing, want bool) {
		t.Helper()
		if err := verifies(sign(how), published(t, i, client)); (err == nil) != want {
			t.Errorf("%s: a token of %+v verifies: %v, want %v", when, how, err, want)
		}
	}
	check("at first", Signing{}, true)
	check("at first", Signing{Alg: ES256}, true)
	check("at first", Signing{Key: Unpublished}, false)
	check("at first", Signing{Unsigned: true}, false)
	check("at first", Signing{Alg: None}, false)
	check("at first", Signing{Alg: HS256}, false)
	check("at first", Signing{KeyID: "other"}, false)
	if _, err := i.Sign(nil, Signing{Key: Previous}); err == nil {
		t.Error("there was a previous key before the first rotation")
	}
	if err := i.Rotate(true); err != nil {
		t.Fatal(err)
	}
	check("the old key kept", Signing{}, true)
	check("the old key kept", Signing{Key: Previous}, true)
	if err := i.Rotate(false); err != nil {
		t.Fatal(err)
	}
	check("the old key dropped", Signing{}, true)
	check("the old key dropped", Signing{Key: Previous}, false)
}

func TestIssuerGoesAwayAndComesBack(t *testing.T) {
	i, client := start(t, Options{CacheControl: "max-age=604800"})
	var set jose.JSONWebKeySet
	for round := range 3 {
		response := get(t, client, i.URL()+"/jwks", &set)
		if got := response.Header.Get("Cache-Control"); got != "max-age=604800" {
			t.Errorf("Cache-Control %q", got)
		}
		i.SetReachable(false)
		if response, err := client.Get(i.URL() + "/jwks"); err == nil {
			response.Body.Close()
			t.Errorf("round %d: the issuer was reached", round)
		}
		i.SetReachable(true)
	}
	if got, want := i.Fetches(), (Fetches{Keys: 3}); got != want {
		t.Errorf("fetches %+v, want %+v", got, want)
	}
}

func TestClaimsAreAsGiven(t *testing.T) {
	i, client := start(t, Options{})
	token, err := i.Sign(map[string]any{"sub": "a", "iat": nil, "exp": 7}, Signing{})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := parsed.Claims(published(t, i, client), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "nbf")
	if want := fmt.Sprint(map[string]any{"iss": i.URL(), "sub": "a", "exp": 7}); fmt.Sprint(got) != want {
		t.Errorf("claims %v, want %s", got, want)
	}
}
