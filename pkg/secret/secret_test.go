package secret_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"cellcast.io/cellcast/pkg/secret"
)

const text = "eyJhbGciOiJub25lIn0.e30."

func TestAValueLeaksThroughNothingButReveal(t *testing.T) {
	type holder struct {
		Shown  secret.Value
		hidden secret.Value
		below  *secret.Value
	}
	value := secret.New(text)
	h := holder{Shown: value, hidden: value, below: &value}

	for way, print := range map[string]func() string{
		"%v":                          func() string { return fmt.Sprintf("%v", value) },
		"%+v of a struct around it":   func() string { return fmt.Sprintf("%+v", h) },
		"%#v of a struct around it":   func() string { return fmt.Sprintf("%#v", h) },
		"%v of a pointer to it":       func() string { return fmt.Sprintf("%v", &h) },
		"%s, %q, %d, %x and %X":       func() string { return fmt.Sprintf("%s %q %d %x %X", value, value, value, value, value) },
		"String":                      value.String,
		"GoString":                    value.GoString,
		"a wrapped error":             func() string { return fmt.Errorf("using %w and %v", errors.New("x"), value).Error() },
		"JSON":                        func() string { return marshalled(t, h) },
		"JSON, as the key of a map":   func() string { return marshalled(t, map[secret.Value]int{value: 1}) },
		"slog's text handler":         func() string { return slogged(h, value, false) },
		"slog's JSON handler":         func() string { return slogged(h, value, true) },
		"logr":                        func() string { return logged(h, value) },
		"a panic's rendering of a %v": func() string { return fmt.Sprint(value, h) },
	} {
		t.Run(way, func(t *testing.T) {
			out := print()
			hex := fmt.Sprintf("%x", text)
			for _, leak := range []string{text, hex, strings.ToUpper(hex), "eyJ"} {
				if strings.Contains(out, leak) {
					t.Errorf("leaked: %s", out)
				}
			}
			if out == "" {
				t.Error("printed nothing, which proves nothing")
			}
		})
	}
}

func TestRevealReturnsTheText(t *testing.T) {
	if got := secret.New(text).Reveal(); got != text {
		t.Errorf("got %q", got)
	}
	if got := (secret.Value{}).Reveal(); got != "" {
		t.Errorf("the zero Value revealed %q", got)
	}
}

func TestAValueIsZeroOnlyWithoutText(t *testing.T) {
	if !secret.New("").IsZero() || !(secret.Value{}).IsZero() || secret.New(text).IsZero() {
		t.Error("IsZero is wrong")
	}
}

func TestValuesAreEqualByTheirText(t *testing.T) {
	if !secret.New(text).Equal(secret.New(text)) {
		t.Error("two Values of one text differ")
	}
	if secret.New(text).Equal(secret.New("other")) || secret.New(text).Equal(secret.Value{}) {
		t.Error("Values of different texts are equal")
	}
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func slogged(h any, value secret.Value, asJSON bool) string {
	var out bytes.Buffer
	var handler slog.Handler = slog.NewTextHandler(&out, nil)
	if asJSON {
		handler = slog.NewJSONHandler(&out, nil)
	}
	slog.New(handler).Info("used", "token", value, "holder", h)
	return out.String()
}

func logged(h any, value secret.Value) string {
	var out string
	funcr.New(func(_, args string) { out += args }, funcr.Options{}).Info("used", "token", value, "holder", h)
	return out
}
