package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/audit"
)

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var row = regexp.MustCompile("(?m)^\\| `([a-z_0-9]+)` \\| ([^|]+) \\|")

// table is the first table after the text, first column to second.
func table(t *testing.T, after string) map[string]string {
	t.Helper()
	_, rest, ok := strings.Cut(document(t), after)
	_, rest, found := strings.Cut(rest, "|---|")
	if !ok || !found {
		t.Fatalf("docs/audit.md has no table after %q", after)
	}
	rest, _, _ = strings.Cut(rest, "\n\n")
	columns := map[string]string{}
	for _, match := range row.FindAllStringSubmatch(rest, -1) {
		if _, twice := columns[match[1]]; twice {
			t.Errorf("%s stands there twice", match[1])
		}
		columns[match[1]] = match[2]
	}
	return columns
}

// fields are the fields of a type as its JSON has them, and what they hold.
func fields(of reflect.Type) map[string]string {
	types := map[string]string{}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		kind := field.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		switch {
		case kind == reflect.TypeFor[time.Time]():
			types[name] = "time"
		case kind.Kind() == reflect.String:
			types[name] = "string"
		case kind.Kind() == reflect.Bool:
			types[name] = "boolean"
		case kind.Kind() == reflect.Slice:
			types[name] = "list"
		default:
			types[name] = "number"
		}
	}
	return types
}

func TestTheDocumentHasEveryFieldAndNoOther(t *testing.T) {
	for heading, of := range map[string]reflect.Type{
		"\n## The record\n":          reflect.TypeFor[audit.Record](),
		"\nEach of the `candidates`": reflect.TypeFor[audit.Candidate](),
		"\nEach of the `changes`":    reflect.TypeFor[audit.Change](),
	} {
		if diff := cmp.Diff(fields(of), table(t, heading)); diff != "" {
			t.Errorf("%s (-type +document):\n%s", of.Name(), diff)
		}
	}
}

func TestTheDocumentHasEveryEventAndNoOther(t *testing.T) {
	want := map[string]bool{}
	for _, event := range audit.Events() {
		want[string(event)] = true
	}
	got := map[string]bool{}
	for event := range table(t, "\n## Events\n") {
		got[event] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-code +document):\n%s", diff)
	}
}

// block is the indented text after the line that begins so, moved to the left.
func block(t *testing.T, begins string) string {
	t.Helper()
	_, rest, ok := strings.Cut(document(t), "\n"+begins)
	_, rest, found := strings.Cut(rest, "\n\n")
	if !ok || !found {
		t.Fatalf("docs/audit.md has nothing after %q", begins)
	}
	var lines []string
	for line := range strings.Lines(rest) {
		text, indented := strings.CutPrefix(line, "    ")
		if !indented {
			break
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "")
}

// compact is a stream of JSON values, a line each.
func compact(t *testing.T, values string) []string {
	t.Helper()
	var lines []string
	decoder := json.NewDecoder(strings.NewReader(values))
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return lines
		}
		var line bytes.Buffer
		if err == nil {
			err = json.Compact(&line, value)
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line.String())
	}
}

func TestTheExampleIsWhatAWriterWrites(t *testing.T) {
	lines := compact(t, block(t, "`trail.jsonl`"))
	if len(lines) != 3 {
		t.Fatalf("%d records", len(lines))
	}
	for _, line := range lines {
		var record audit.Record
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&record); err != nil {
			t.Fatalf("%v:\n%s", err, line)
		}
		var out output
		if err := audit.NewWriter(&out, nil).Write(record); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(line+"\n", out.String()); diff != "" {
			t.Errorf("a record (-document +code):\n%s", diff)
		}
	}
}

func TestTheCommandsOfTheExampleSayWhatTheDocumentSays(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("jq isn't installed")
	}
	dir := t.TempDir()
	for _, name := range []string{"trail.jsonl", "cell-audit.log"} {
		text := strings.Join(compact(t, block(t, "`"+name+"`")), "\n") + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := regexp.MustCompile(`(?m)^    \$ (jq .*)\n((?:    .*\n)+)`).FindAllStringSubmatch(document(t), -1)
	if len(commands) != 5 {
		t.Errorf("the document has %d commands, want 5", len(commands))
	}
	for _, match := range commands {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", match[1])
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", match[1], err, out)
		}
		want := regexp.MustCompile(`(?m)^    `).ReplaceAllString(match[2], "")
		if diff := cmp.Diff(want, string(out)); diff != "" {
			t.Errorf("%s (-document +jq):\n%s", match[1], diff)
		}
	}
}
