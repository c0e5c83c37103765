package credential

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// Bounds of the search for a JWT's header, which in practice has some 200
// characters.
const (
	maxHeader      = 8192
	maxHeaderTries = 64
)

// hasJWT finds three base64url segments (RFC 7515 section 7.1) whose first is
// JSON with an alg; so has an encrypted one of five (RFC 7516).
func hasJWT(text string) bool {
	for i := range len(text) {
		if text[i] != '.' {
			continue
		}
		second := run(text[i+1:], urlSafe) // empty where an encrypted one has no key of its own
		if !strings.HasPrefix(text[i+1+second:], ".") {
			continue
		}
		start := i
		for start > 0 && i-start < maxHeader && strings.IndexByte(urlSafe, text[start-1]) >= 0 {
			start--
		}
		if endsInHeader(text[start:i]) {
			return true
		}
	}
	return false
}

// endsInHeader says that the text is a JOSE header, or ends in one that is
// glued to other characters of the alphabet. In base64 the header's opening
// brace is ey or ew.
func endsInHeader(text string) bool {
	tries := 0
	for i := 0; i+1 < len(text) && tries < maxHeaderTries; i++ {
		if i > 0 && (text[i] != 'e' || text[i+1] != 'y' && text[i+1] != 'w') {
			continue
		}
		tries++
		decoded, err := base64.RawURLEncoding.DecodeString(text[i:])
		if err != nil {
			continue
		}
		var header struct {
			Alg string `json:"alg"`
		}
		if json.Unmarshal(decoded, &header) == nil && header.Alg != "" {
			return true
		}
	}
	return false
}
