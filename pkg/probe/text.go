package probe

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuote is the most that is repeated of a text of the target's.
const maxQuote = 256

// jwt is what a token looks like. None belongs in a message, whoever wrote it.
var jwt = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)*`)

// quote is a text of the target's as it may be repeated: in one line, without what
// a terminal would act on, without tokens, and cut.
func quote(text string) string {
	text = text[:min(len(text), 16*maxQuote)] // no work on what is cut anyway
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // directions of writing among them
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	text = strings.Join(strings.Fields(text), " ")
	return cut(jwt.ReplaceAllString(text, "[token]"), maxQuote)
}

// clause is a quoted text as it stands before a full stop of ours.
func clause(text string) string { return strings.TrimRight(text, ".") }

// printable reports whether a text is the same in one line of a terminal.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// cut shortens a text to so many bytes, between two characters.
func cut(text string, most int) string {
	const ellipsis = "…"
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
