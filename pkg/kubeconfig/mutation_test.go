package kubeconfig

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// tokens are what YAML, JSON and URLs are made of, and what readers of them differ
// in.
func tokens() []string {
	return []string{
		"\n", " ", "  ", "\t", "\r\n", ":", ": ", "-", "- ", "#", " #", "'", `"`, "|", ">", "|-", ">+", "&a ", "*a", "!", "! ", "!!", "<<", "%", "@", "`",
		"{", "}", "[", "]", ",", "?", "? ", "---\n", "\n---\n", "...\n", "\n...\n", "~", "null", "yes", "y", "true", "0", "1e3", "0x1", "1_0", "0o7", "0b1", ".5", "2026-01-02", "=",
		`\n`, `\x00`, `\u0041`, `\/`, `\`, "\\\n", "/", "//", ".", "..", "%41", "?a=b", "#a", ":443", "\u00e9", "\u0085", "\u2028",
		"\n    tokenFile: /a", "\n    token: b", "\n    proxy-url: http://a", "\nkind: Config", "\napiVersion: v1", "\npreferences: {}", "{}", "[]", "# a\n", "\n# a", "\n    # a",
	}
}

// mutations are files one or two steps away from those that are good, the same in
// every run.
func mutations(t *testing.T) [][]byte {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	words := tokens()
	var out [][]byte
	for _, f := range corpus(t) {
		if f.rule != "" && !slices.Contains([]Rule{DuplicateField, UnknownField, Block, Tag}, f.rule) {
			continue
		}
		for range 200 {
			data := slices.Clone(f.data)
			for range 1 + random.IntN(2) {
				data = mutate(random, words, data)
			}
			out = append(out, data)
		}
	}
	return out
}

func mutate(random *rand.Rand, words []string, data []byte) []byte {
	word := []byte(words[random.IntN(len(words))])
	lines := bytes.SplitAfter(data, []byte("\n"))
	i := random.IntN(len(lines))
	line := slices.Clone(lines[i])
	// By its line first, or nearly every change would fall into the CA.
	at := 0
	if len(line) > 0 {
		at = random.IntN(min(len(line), 48))
	}
	switch random.IntN(10) {
	case 0: // put in a word
		line = slices.Insert(line, at, word...)
	case 1: // put a word in place of a character
		line = slices.Replace(line, at, min(at+1, len(line)), word...)
	case 2: // take out a character
		line = slices.Delete(line, at, min(at+1, len(line)))
	case 3: // say a line once more
		return bytes.Join(slices.Insert(slices.Clone(lines), random.IntN(len(lines)), line), nil)
	case 4: // put a word where the line ends
		line = slices.Insert(line, max(0, len(line)-1), word...)
	case 5, 6: // put something where the line ends that should change nothing
		endings := []string{" ", "\t", " # a", "\r", "\n", "\n# a", "\n      # a", "\t# '", " #\"", "\n\n\t\n"}
		line = slices.Insert(line, max(0, len(line)-1), []byte(endings[random.IntN(len(endings))])...)
	case 7: // write the value otherwise
		if name, value, ok := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(": ")); ok {
			quoted := []string{`"%s"`, `'%s'`, " %s ", "\t%s", "\n        %s", "\"%s\\\n        \"", "! %s", "! '%s'", "{%s}"}
			line = fmt.Appendf(nil, "%s: "+quoted[random.IntN(len(quoted))]+"\n", name, value)
		}
	case 8: // put any character that prints into the token
		if before, ok := bytes.CutSuffix(line, []byte("token\n")); ok {
			line = fmt.Appendf(nil, "%s%ctoken\n", before, rune(' '+1+random.IntN('~'-' ')))
		}
	default: // put a word before a value
		line = slices.Insert(line, bytes.Index(line, []byte(": "))+1, slices.Concat([]byte(" "), word)...)
	}
	lines = slices.Clone(lines)
	lines[i] = line
	return bytes.Join(lines, nil)
}

func canonicalHost(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.String()
	}
	return strings.ToLower(host)
}
