// Package terminal is for what came over the network and is shown on a terminal.
package terminal

import "strings"

// Printable keeps a text from driving the terminal: what would is a blank.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ', r == 0x7f, r >= 0x80 && r < 0xa0:
			return ' '
		case r == 0x2028, r == 0x2029, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f:
			return ' ' // it would end the line, or turn the text around
		}
		return r
	}, s)
}
