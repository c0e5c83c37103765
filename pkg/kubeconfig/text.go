package kubeconfig

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is the size of the largest kubeconfig.
const MaxBytes = 64 << 10

// checkText refuses bytes that no YAML reader need see: too many, of another
// encoding, or such that what an editor shows isn't what is read.
func checkText(data []byte) *Error {
	if len(data) > MaxBytes {
		return refuseAsIs(TooLarge)
	}
	if bytes.HasPrefix(data, []byte("\ufeff")) || !utf8.Valid(data) {
		return refuseAsIs(Encoding)
	}
	line := 1
	for i, c := range string(data) {
		switch {
		case c == '\n':
			line++
		case c == '\t':
		case c == '\r' && bytes.HasPrefix(data[i+1:], []byte("\n")):
		case c == '%' && (i == 0 || data[i-1] == '\n'):
			return refuseAsIs(Directive).at("", line)
		case !unicode.IsGraphic(c):
			return refuseAsIs(ControlCharacter).at("", line)
		}
	}
	return nil
}
