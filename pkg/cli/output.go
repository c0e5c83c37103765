package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"cellcast.io/cellcast/pkg/cli/terminal"
)

// format is how an answer is written.
type format string

// The formats.
const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
	formatName  format = "name"
)

// Set makes the format a flag.
func (f *format) Set(value string) error {
	switch got := format(value); got {
	case formatTable, formatJSON, formatYAML, formatName:
		*f = got
		return nil
	default:
		return fmt.Errorf("must be table, json, yaml or name")
	}
}

// String is the format's name.
func (f *format) String() string { return string(*f) }

// Type is what the help shows for a value.
func (f *format) Type() string { return "table|json|yaml|name" }

// whole reports whether the answer is shown whole, the token included.
func (f format) whole() bool { return f == formatJSON || f == formatYAML }

// write writes an object whole, as JSON or YAML.
func (f format) write(w io.Writer, object any) error {
	var data []byte
	var err error
	if f == formatYAML {
		data, err = yaml.Marshal(object)
	} else {
		data, err = json.MarshalIndent(object, "", "    ")
		data = append(data, '\n')
	}
	if err != nil {
		return fmt.Errorf("write the answer as %s: %w", f, err)
	}
	_, err = w.Write(data)
	return err
}

// table writes rows under a header, in kubectl's spacing; an empty cell of the
// table is <none>.
func table(w io.Writer, rows ...[]string) error {
	tabs := tabwriter.NewWriter(w, 6, 4, 3, ' ', 0)
	for _, row := range rows {
		row = slices.Clone(row)
		for i, value := range row {
			if row[i] = terminal.Printable(value); value == "" {
				row[i] = "<none>"
			}
		}
		if _, err := fmt.Fprintln(tabs, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return tabs.Flush()
}

// cellName is how kubectl names a cell; ${cell##*/} is the bare name.
func cellName(cell string) string { return "cell.cellcast.io/" + cell }

// age is a span of time in kubectl's words.
func age(d time.Duration) string { return duration.HumanDuration(d) }
