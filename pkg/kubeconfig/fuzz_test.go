package kubeconfig

import (
	"errors"
	"strings"
	"testing"
)

// FuzzParse looks for a file that we take and client-go reads differently, for one
// that stops the reader, and for an error that quotes the token.
func FuzzParse(f *testing.F) {
	for _, file := range corpus(f) {
		f.Add(file.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := Parse(data)
		if err == nil {
			sameAsLoader(t, data, k)
			return
		}
		var refused *Error
		if !errors.As(err, &refused) || meaning(refused.Rule).Do == "" {
			t.Fatalf("an error of no rule: %v", err)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Fatalf("the error quotes the file: %v", err)
		}
	})
}
