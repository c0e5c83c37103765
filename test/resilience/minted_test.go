package resilience

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// minted are the tokens that were minted, known by their signatures.
type minted struct {
	mu         sync.Mutex
	signatures map[string]bool
}

func (m *minted) add(token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.signatures == nil {
		m.signatures = map[string]bool{}
	}
	m.signatures[token[strings.LastIndex(token, ".")+1:]] = true
}

func (m *minted) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.signatures)
}

// under looks for the signatures in every file below a folder, and returns those
// that have one and how many were searched.
func (m *minted) under(dir string) (found []string, searched int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		searched++
		if m.in(content) {
			found = append(found, path)
		}
		return nil
	})
	return found, searched, err
}

// in reports whether a signature stands in the content between characters that
// aren't of base64url.
func (m *minted) in(content []byte) bool {
	begin := -1
	for i, c := range content {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			if begin < 0 {
				begin = i
			}
		case begin >= 0:
			if m.signatures[string(content[begin:i])] {
				return true
			}
			begin = -1
		}
	}
	return begin >= 0 && m.signatures[string(content[begin:])]
}

func TestMintedFindsASignatureInAFile(t *testing.T) {
	var m minted
	m.add("eyJoZWFkZXI.eyJwYXlsb2Fk.c2lnbmF0dXJl")
	for content, want := range map[string]bool{
		`{"token":"eyJoZWFkZXI.eyJwYXlsb2Fk.c2lnbmF0dXJl"}`: true,
		"\x00\x12c2lnbmF0dXJl":                              true,
		"c2lnbmF0dXJl\n":                                    true,
		"c2lnbmF0dXJlcw":                                    false,
		"":                                                  false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		found, searched, err := m.under(dir)
		if err != nil || searched != 1 || (len(found) == 1) != want {
			t.Errorf("in %q it found %v of %d: %v", content, found, searched, err)
		}
	}
}
