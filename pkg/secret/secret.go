// Package secret holds values that must not leak by accident: a log line, an
// error, a %+v of a struct around it, a JSON document. A Value prints as
// [redacted] everywhere; Reveal is the one way to its text, so a search for
// Reveal finds every use.
package secret

import (
	"crypto/subtle"
	"log/slog"
)

// Value is a secret text. The zero Value holds none.
type Value struct {
	// A pointer, because fmt calls no method where the Value is in an unexported
	// field of another struct, nor under %d: it prints an address then.
	text *string
}

const redacted = "[redacted]"

// New returns a Value of the text.
func New(text string) Value {
	if text == "" {
		return Value{}
	}
	return Value{text: &text}
}

// Reveal returns the text.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// IsZero reports whether the Value holds no text.
func (v Value) IsZero() bool { return v.text == nil }

// Equal compares two Values in a time that depends on their length alone.
func (v Value) Equal(other Value) bool {
	return subtle.ConstantTimeCompare([]byte(v.Reveal()), []byte(other.Reveal())) == 1
}

// String redacts the Value.
func (Value) String() string { return redacted }

// GoString redacts the Value.
func (Value) GoString() string { return redacted }

// MarshalJSON redacts the Value.
func (Value) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText redacts the Value, also where it's the key of a map.
func (Value) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue redacts the Value.
func (Value) LogValue() slog.Value { return slog.StringValue(redacted) }
