package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// The documentation's example is the one that the script runs.
func TestDocumentationShowsThePolicyTestThatTheScriptRuns(t *testing.T) {
	doc, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := txtar.ParseFile("testdata/script/policytest.txtar")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{"policies/a.yaml": false, "policies/b.yaml": false, "main.json": false, "governs.txt": false, "nobody.txt": false}
	for _, file := range script.Files {
		if _, wanted := shown[file.Name]; !wanted {
			continue
		}
		shown[file.Name] = true
		if block := indented(string(file.Data)); !strings.Contains(string(doc), block) {
			t.Errorf("docs/policies.md lacks %s as the script has it:\n%s", file.Name, block)
		}
	}
	for name, found := range shown {
		if !found {
			t.Errorf("the script has no file %s", name)
		}
	}
}

// indented is text as a block of code.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}
