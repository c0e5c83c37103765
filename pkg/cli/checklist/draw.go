package checklist

import (
	"fmt"
	"io"
	"strings"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// draw draws the list in the place of the one that stands there.
func (l *List) draw(checks []registryv1alpha1.TargetCheck, now Phase) error {
	width, _ := l.size()
	var lines []string
	for _, text := range states(checks, now) {
		lines = append(lines, cut(text, width-1))
	}
	var out strings.Builder
	if rows := l.rows(width); rows > 0 {
		// Up to the first of them, and away with all that stands below.
		fmt.Fprintf(&out, "\x1b[%dA\r\x1b[J", rows)
	}
	for _, text := range lines {
		out.WriteString(text + "\n")
	}
	l.drawn = lines
	_, err := io.WriteString(l.out, out.String())
	return err
}

// states are all items in their order, a line each, and those of a newer hub after
// them. Of a run that has begun, the first that hasn't ended is running.
func states(checks []registryv1alpha1.TargetCheck, now Phase) []string {
	var lines []string
	state := running
	if now == Asked {
		state = waiting
	}
	ended := ordered(checks)
	for _, name := range registryv1alpha1.TargetChecks() {
		if len(ended) > 0 && ended[0].Name == name {
			lines = append(lines, line(string(ended[0].Result), string(name), ended[0].Message))
			ended = ended[1:]
		} else if now != Over {
			lines = append(lines, line(state, string(name), ""))
			state = waiting
		}
	}
	for _, c := range ended {
		lines = append(lines, line(string(c.Result), string(c.Name), c.Message))
	}
	return lines
}

// rows is how many rows of the window the list takes that was drawn last. The
// window may have become narrower since.
func (l *List) rows(width int) int {
	rows := 0
	for _, text := range l.drawn {
		rows += max(1, (columns(text)+width-1)/max(1, width))
	}
	return rows
}

// cut shortens a line to so many columns, and shows where it did.
func cut(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	used := 1 // of the ellipsis
	for i, r := range text {
		if used += columns(string(r)); used > most {
			return text[:i] + "…"
		}
	}
	return text
}

// columns is how many columns a text takes at most: letters of Latin scripts one
// each, and whatever else one can't be sure of two.
func columns(text string) int {
	n := 0
	for _, r := range text {
		if n++; r >= 0x300 && (r < 0x2010 || r > 0x2027) {
			n++
		}
	}
	return n
}
