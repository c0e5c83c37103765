package door

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// jwt is a token by its form, with the given claims.
func jwt(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + "." + part([]byte("signature"))
}

func TestTokenFileIsRead(t *testing.T) {
	expiry := time.Unix(1700000000, 0)
	for name, test := range map[string]struct {
		content string
		want    Claims
	}{
		"with one audience": {
			jwt(`{"iss":"https://ci.example.com","aud":"cellcast.io/hub","exp":1700000000}`),
			Claims{Issuer: "https://ci.example.com", Audience: []string{"cellcast.io/hub"}, Expiry: expiry}},
		"with several audiences": {
			jwt(`{"iss":"https://ci.example.com","aud":["a","b"],"exp":1700000000}`),
			Claims{Issuer: "https://ci.example.com", Audience: []string{"a", "b"}, Expiry: expiry}},
		"with white space around it": {
			"\n " + jwt(`{"iss":"https://ci.example.com"}`) + "\r\n",
			Claims{Issuer: "https://ci.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := readToken(file(t, test.content))
			if err != nil {
				t.Fatal(err)
			}
			if got := token.Reveal(); got != strings.TrimSpace(test.content) {
				t.Errorf("token %q", got)
			}
			if diff := cmp.Diff(test.want, token.Claims()); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTokenFileIsRefused(t *testing.T) {
	part := base64.RawURLEncoding.EncodeToString
	for name, test := range map[string]struct{ content, want string }{
		"that is empty":                 {" \n", "the token file PATH is empty: the step that writes it got no token"},
		"with a whole JSON answer":      {`{"value":"s3cret"}`, "the token file PATH holds JSON: the token is a field of it; write that alone (jq -r .value)"},
		"with a password":               {"s3cret", "the token file PATH holds no JWT: expected are three base64url parts with dots between"},
		"with dots and no JWT":          {"s3cret.s3cret.s3cret", "the token file PATH holds no JWT: expected are three base64url parts with dots between"},
		"with two parts":                {part([]byte(`{"alg":"none"}`)) + "." + part([]byte(`{"sub":"s3cret"}`)), "the token file PATH holds no JWT: expected are three base64url parts with dots between"},
		"with an empty signature":       {part([]byte(`{"alg":"none"}`)) + "." + part([]byte(`{"sub":"s3cret"}`)) + ".", "the token file PATH holds no JWT: expected are three base64url parts with dots between"},
		"with a JWE":                    {strings.Repeat(part([]byte(`{"alg":"dir"}`))+".", 4) + "s3cret", "the token file PATH holds no JWT: expected are three base64url parts with dots between"},
		"with a header that is none":    {part([]byte(`{}`)) + "." + part([]byte(`{"sub":"s3cret"}`)) + ".c2ln", "the token file PATH holds no JWT: expected are three base64url parts with dots between"},
		"that was wrapped":              {jwt(`{"sub":"s3cret"}`) + "\nAAAA", "the token file PATH holds more than one word: a JWT is one line without spaces"},
		"with a signature that is none": {jwt(`{"sub":"s3cret"}`) + "!", "the token file PATH holds no whole JWT: its signature isn't base64url; was it cut off?"},
		"that is too long":              {strings.Repeat("s3cret", 3000), "the token file PATH is longer than 16384 bytes: it can't be a token"},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, test.content)
			_, err := readToken(path)
			if want := strings.ReplaceAll(test.want, "PATH", path); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestTokenFileThatDoesNotExistSaysWhatToDo(t *testing.T) {
	_, err := readToken("no/such.jwt")
	const want = "the token file no/such.jwt doesn't exist: the job must first write its OIDC token there. " +
		"On GitHub Actions and Buildkite leave it out: the token is fetched"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestTokenShowsItselfToNobody(t *testing.T) {
	token, err := parseToken(jwt(`{"sub":"s3cret"}`))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(map[string]any{"token": token})
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %s %v", token, token, token, token, asJSON, token.LogValue())
	for _, part := range strings.Split(token.Reveal(), ".") {
		if strings.Contains(shown, part) {
			t.Errorf("a part of the token shows: %s", shown)
		}
	}
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
