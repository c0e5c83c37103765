// Package shell writes commands that somebody is to paste into a POSIX shell.
package shell

import "strings"

// plain is what needs no quotes anywhere in a word.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,"

// Word is the text as one word, in quotes where the shell would make something
// else of it.
func Word(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
