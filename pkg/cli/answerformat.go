package cli

import (
	"errors"
	"slices"
	"strings"
)

// formatWide is the table with more columns.
const formatWide format = "wide"

// answerFormat is a format out of those that one command has: the table, and
// these also.
type answerFormat struct {
	format
	also []format
}

func (f *answerFormat) choices() []string {
	names := []string{string(formatTable)}
	for _, choice := range f.also {
		names = append(names, string(choice))
	}
	return names
}

// Set makes it a flag.
func (f *answerFormat) Set(value string) error {
	if !slices.Contains(f.choices(), value) {
		return errors.New("must be " + strings.Join(f.choices(), ", "))
	}
	f.format = format(value)
	return nil
}

// String is the format's name.
func (f *answerFormat) String() string { return string(f.format) }

// Type is what the help shows for a value.
func (f *answerFormat) Type() string { return strings.Join(f.choices(), "|") }
