package credential

import "strings"

// shortest is the length of the shortest text that material looks at; nothing
// that it knows is shorter.
const shortest = 8

// material returns the form of the credential that a plain text holds, or "".
func (s *search) material(text string) Form {
	if len(text) < shortest {
		return ""
	}
	switch {
	case hasPrivateKey(text):
		return PrivateKey
	case hasJWT(text):
		return JWT
	case isBootstrapToken(strings.TrimSpace(text)):
		return BootstrapToken
	}
	for _, t := range s.tokens {
		if t.in(text) {
			return t.form
		}
	}
	switch {
	case hasAuthHeader(text):
		return AuthHeader
	case hasURLPassword(text):
		return URLPassword
	case hasAWSKeyPair(text):
		return AWSKeyPair
	default:
		return ""
	}
}

// hasPrivateKey finds the armour of RFC 7468 and of OpenPGP, whatever the
// algorithm: BEGIN RSA PRIVATE KEY, BEGIN PGP PRIVATE KEY BLOCK.
func hasPrivateKey(text string) bool {
	for {
		_, rest, found := strings.Cut(text, "-----BEGIN ")
		if !found {
			return false
		}
		label, _, closed := strings.Cut(rest, "-----")
		if closed && len(label) < 64 && strings.Contains(label, "PRIVATE KEY") {
			return true
		}
		text = rest
	}
}
