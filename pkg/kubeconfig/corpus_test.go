package kubeconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cellcast.io/cellcast/pkg/kubeconfig/address"
)

// file is one of testdata: RULE.LINE.what-it-does.yaml, or good.what-it-shows.yaml.
// Line 0 is none. Every value in a file that is refused has the word canary in it.
type file struct {
	name string
	data []byte
	rule Rule // empty where the file is good
	line int
}

func corpus(t testing.TB) []file {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	var files []file
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := file{name: filepath.Base(path), data: data}
		if parts := strings.Split(f.name, "."); parts[0] != "good" {
			f.rule = Rule(parts[0])
			if f.line, err = strconv.Atoi(parts[1]); err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
		}
		files = append(files, f)
	}
	if len(files) < 200 {
		t.Fatalf("testdata has only %d files", len(files))
	}
	return files
}

func TestCorpus(t *testing.T) {
	for _, f := range corpus(t) {
		t.Run(f.name, func(t *testing.T) {
			k, err := ParsePermitted(f.data, address.Policy{})
			if f.rule == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var refused *Error
			if !errors.As(err, &refused) {
				t.Fatalf("taken: %+v", k)
			}
			if refused.Rule != f.rule || refused.Line != f.line {
				t.Errorf("got rule %s at line %d: %v", refused.Rule, refused.Line, err)
			}
			if strings.Contains(strings.ToLower(err.Error()), "canary") {
				t.Errorf("the error quotes the file: %v", err)
			}
			if k.Server != "" || k.CAData != nil || !k.Token.IsZero() {
				t.Errorf("something came with the error: %+v", k)
			}
		})
	}
}

func TestEveryRuleHasAFileAndAMeaning(t *testing.T) {
	shown := map[Rule]bool{}
	for _, f := range corpus(t) {
		shown[f.rule] = true
	}
	delete(shown, "")
	for _, m := range Meanings() {
		if !shown[m.Rule] {
			t.Errorf("no file of testdata breaks the rule %s", m.Rule)
		}
		if m.Means == "" || m.Why == "" || m.Do == "" {
			t.Errorf("the meaning of %s isn't whole", m.Rule)
		}
		delete(shown, m.Rule)
	}
	for rule := range shown {
		t.Errorf("%s isn't in the table of meanings", rule)
	}
}

func TestTheDocumentationHasTheTable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/kubeconfig.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Meanings() {
		row := "| `" + string(m.Rule) + "` | " + m.Means + " | " + m.Why + " | " + m.Do + " |\n"
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/kubeconfig.md lacks this row:\n%s", row)
		}
	}
	if got, want := strings.Count(string(doc), "\n| `"), len(Meanings()); got != want {
		t.Errorf("docs/kubeconfig.md has %d rows for %d rules", got, want)
	}
}
