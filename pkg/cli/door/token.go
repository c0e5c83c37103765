package door

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"
)

// maxToken is the longest token that is taken, in bytes. CI tokens have one or
// two thousand.
const maxToken = 16 << 10

// Token is a JWT by its form. It shows itself to nobody but who calls Reveal.
type Token struct {
	raw    string
	claims Claims
}

// Claims is what an unverified token says of itself; none of it is secret.
type Claims struct {
	Issuer   string
	Audience []string
	// Expiry is zero where the token names none.
	Expiry time.Time
}

// Reveal returns the token itself.
func (t Token) Reveal() string { return t.raw }

// Claims returns what the token says of itself.
func (t Token) Claims() Claims { return t.claims }

const redacted = "[token]"

// String hides the token.
func (Token) String() string { return redacted }

// GoString hides the token.
func (Token) GoString() string { return redacted }

// MarshalJSON hides the token.
func (Token) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue hides the token.
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// readToken reads a JWT from a file. No error quotes what is in the file.
func readToken(path string) (Token, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return Token{}, fmt.Errorf("the token file %s doesn't exist: the job must first write its OIDC token there. "+
			"On GitHub Actions and Buildkite leave it out: the token is fetched", path)
	}
	if err != nil {
		return Token{}, fmt.Errorf("open the token file: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	if err != nil {
		return Token{}, fmt.Errorf("read the token file: %w", err)
	}
	token, err := parseToken(string(content))
	if err != nil {
		return Token{}, fmt.Errorf("the token file %s %w", path, err)
	}
	return token, nil
}

// ClaimsOf is what a token says of itself; false where it's no JWT.
func ClaimsOf(token string) (Claims, bool) {
	parsed, err := parseToken(token)
	return parsed.claims, err == nil
}

func parseToken(content string) (Token, error) {
	raw := strings.TrimSpace(content)
	switch {
	case len(content) > maxToken:
		return Token{}, fmt.Errorf("is longer than %d bytes: it can't be a token", maxToken)
	case raw == "":
		return Token{}, errors.New("is empty: the step that writes it got no token")
	case strings.HasPrefix(raw, "{"):
		return Token{}, errors.New("holds JSON: the token is a field of it; write that alone (jq -r .value)")
	case strings.ContainsAny(raw, " \t\r\n"): // which base64 would pass over
		return Token{}, errors.New("holds more than one word: a JWT is one line without spaces")
	}
	parts := strings.Split(raw, ".")
	var header struct {
		Algorithm string `json:"alg"`
	}
	var payload struct {
		Issuer   string      `json:"iss"`
		Audience audience    `json:"aud"`
		Expiry   json.Number `json:"exp"`
	}
	if len(parts) != 3 || parts[2] == "" || !decode(parts[0], &header) || header.Algorithm == "" || !decode(parts[1], &payload) {
		return Token{}, errors.New("holds no JWT: expected are three base64url parts with dots between")
	}
	if _, err := base64.RawURLEncoding.DecodeString(parts[2]); err != nil {
		return Token{}, errors.New("holds no whole JWT: its signature isn't base64url; was it cut off?")
	}
	claims := Claims{Issuer: payload.Issuer, Audience: payload.Audience}
	if seconds, err := payload.Expiry.Float64(); err == nil {
		claims.Expiry = time.Unix(int64(seconds), 0)
	}
	return Token{raw: raw, claims: claims}, nil
}

func decode(part string, into any) bool {
	data, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(data, into) == nil
}

// audience is one string or a list of them: RFC 7519, section 4.1.3.
type audience []string

// UnmarshalJSON accepts both forms.
func (a *audience) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}
