package credential

import (
	"encoding/base64"
	"strings"
)

// hasAuthHeader finds "Bearer <token>" and "Basic <base64 of user:password>".
// After Bearer a word of 16 or more with a digit is a token; after
// "Authorization:" any word is.
func hasAuthHeader(text string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"',;", r) })
	for i := 0; i+1 < len(words); i++ {
		scheme := strings.ToLower(words[i])
		value := words[i+1]
		header := strings.Contains(scheme, "authorization") || i > 0 && strings.Contains(strings.ToLower(words[i-1]), "authorization")
		switch {
		case endsInWord(scheme, "bearer"):
			plain := run(value, urlSafe+"+/=.~")
			if header && plain > 0 || plain >= 16 && strings.ContainsAny(value[:plain], digits) {
				return true
			}
		case endsInWord(scheme, "basic"):
			if isBasicPair(value) {
				return true
			}
		}
	}
	return false
}

func endsInWord(text, word string) bool {
	before, ends := strings.CutSuffix(text, word)
	return ends && (before == "" || strings.IndexByte(letters+digits, before[len(before)-1]) < 0)
}

// isBasicPair says that the text is base64 of a user and a password, RFC 7617.
func isBasicPair(text string) bool {
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	return err == nil && isText(decoded) && strings.Contains(string(decoded), ":")
}

// hasURLPassword finds scheme://user:password@host.
func hasURLPassword(text string) bool {
	for {
		_, rest, found := strings.Cut(text, "://")
		if !found {
			return false
		}
		authority := rest
		if end := strings.IndexAny(rest, "/?# \t\r\n\"'"); end >= 0 {
			authority = rest[:end]
		}
		if at := strings.LastIndexByte(authority, '@'); at >= 0 {
			if _, password, _ := strings.Cut(authority[:at], ":"); password != "" {
				return true
			}
		}
		text = rest
	}
}

// assigns says that text outside any document gives a credential by its name.
func assigns(text string) bool { return hasAssignment(text) || hasFieldLine(text) }

// quotes stand around names and values; the backslash where they are quoted
// once more.
const quotes = "\"'\\"

// hasAssignment finds password=value and "password": "value" in text that is
// no document: a command line, a URL's query, an env file, broken JSON. A value
// that is a comparison (==) or refers to something ($X, {{x}}, <x>) is none.
func hasAssignment(text string) bool {
	for i := range len(text) {
		if text[i] != '=' && text[i] != ':' {
			continue
		}
		name := strings.TrimRight(text[:i], " \t")
		unquoted := strings.TrimRight(name, quotes)
		if text[i] == ':' && name == unquoted {
			continue
		}
		name = unquoted
		start := len(name)
		for start > 0 && len(name)-start < maxKey && strings.IndexByte(urlSafe+".", name[start-1]) >= 0 {
			start--
		}
		value := strings.TrimLeft(text[i+1:], " \t"+quotes)
		if value == "" || strings.ContainsAny(value[:1], "=~>${<[&;,\r\n") {
			continue
		}
		if isCredentialName(strings.TrimLeft(name[start:], "-")) {
			return true
		}
	}
	return false
}

// hasFieldLine finds the line "token: value" of a document that is cut off or
// otherwise broken.
func hasFieldLine(text string) bool {
	if !strings.Contains(text, "\n") {
		return false
	}
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimLeft(line, " \t-"), ": ")
		words := strings.Fields(value)
		if found && len(words) == 1 && strings.Trim(words[0], quotes) != "" && isCredentialName(name) {
			return true
		}
	}
	return false
}
