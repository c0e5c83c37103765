package credential

import (
	"crypto/x509"
	"encoding/base64"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shortestBase64 is the length of the shortest run that is tried as base64: 16
// characters hold 12 bytes, and less than that is no credential.
const shortestBase64 = 16

// unwrapped yields what a text holds in base64: all of it, where only white
// space interrupts it, then each run inside it, then each part of a run, for
// the path or name around it may be of characters that base64 has too.
func unwrapped(text string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		whole := strings.Join(strings.Fields(text), "")
		if decoded, ok := decodeBase64(whole); ok && !yield(decoded) {
			return
		}
		for _, run := range strings.FieldsFunc(text, not(urlSafe+"+/")) {
			if decoded, ok := decodeBase64(run); ok {
				if run != whole && !yield(decoded) {
					return
				}
				if isText(decoded) {
					continue
				}
			}
			for part := range parts(run) {
				if decoded, ok := decodeBase64(part); ok && !yield(decoded) {
					return
				}
			}
		}
	}
}

// parts yields the shorter runs inside a run, by either alphabet of base64 and
// by what they have in common.
func parts(run string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, alphabet := range []string{urlSafe, letters + digits + "+/", letters + digits} {
			for _, part := range strings.FieldsFunc(run, not(alphabet)) {
				if part != run && !yield(part) {
					return
				}
			}
		}
	}
}

// decodeBase64 takes both alphabets of RFC 4648, padded or not.
func decodeBase64(text string) ([]byte, bool) {
	text = strings.TrimRight(text, "=")
	if len(text) < shortestBase64 {
		return nil, false
	}
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	decoded, err := encoding.DecodeString(text)
	return decoded, err == nil
}

// isText says that decoded bytes are worth a search: most runs of letters
// decode to noise.
func isText(decoded []byte) bool {
	return utf8.Valid(decoded) && strings.IndexFunc(string(decoded), func(r rune) bool {
		return !unicode.IsPrint(r) && !strings.ContainsRune("\n\r\t", r)
	}) < 0
}

// isKey says that decoded bytes are a private key in DER, without its armour.
func isKey(decoded []byte) bool {
	if len(decoded) < 2 || decoded[0] != 0x30 { // an ASN.1 SEQUENCE
		return false
	}
	if _, err := x509.ParsePKCS8PrivateKey(decoded); err == nil {
		return true
	}
	if _, err := x509.ParsePKCS1PrivateKey(decoded); err == nil {
		return true
	}
	_, err := x509.ParseECPrivateKey(decoded)
	return err == nil
}
