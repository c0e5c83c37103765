// Package webhooktest reads the rows in testdata of the admission handlers. The
// same files are applied to a real API server, so that the table holds there
// too.
package webhooktest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Row is a file of a table. Its leading comments say what must become of it:
//
//	# refused: spec.endpoint        the field that a refusal names; one line each
//	# secret: hunter2               what no answer may quote
//	# accepted
type Row struct {
	// Name is the file's name without its extension.
	Name string
	// Refused are the fields that a refusal names; empty for an accepted row.
	Refused []string
	// Secret is what the refusal must not quote.
	Secret string
	// JSON is the row.
	JSON []byte
}

// Rows reads the rows of a directory. It fails on a file that doesn't say what
// must become of it, and on a directory without any.
func Rows(t testing.TB, dir string) []Row {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no rows in %s (%v)", dir, err)
	}
	rows := make([]Row, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		row := Row{Name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		accepted := false
		for line := range strings.Lines(string(text)) {
			comment, is := strings.CutPrefix(strings.TrimSpace(line), "# ")
			if !is {
				break
			}
			if path, is := strings.CutPrefix(comment, "refused: "); is {
				row.Refused = append(row.Refused, path)
			}
			if secret, is := strings.CutPrefix(comment, "secret: "); is {
				row.Secret = secret
			}
			accepted = accepted || comment == "accepted"
		}
		if accepted == (len(row.Refused) > 0) || accepted == (row.Secret != "") {
			t.Fatalf("%s must begin with either '# accepted', or '# refused: <path>' and '# secret: <value>'", file)
		}
		if row.JSON, err = yaml.YAMLToJSON(text); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		rows = append(rows, row)
	}
	return rows
}
