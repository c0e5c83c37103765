package credential_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"cellcast.io/cellcast/pkg/webhook/credential"
)

// FuzzScan plants a token in a string of an object, as the value, as the key
// and in base64. It must be found whatever surrounds it, and no path may quote
// it; and whatever the object, the search must end without a panic.
func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"metadata":{"annotations":{"a":"b"}}}`), "", "")
	f.Add([]byte(`{"a":"b","a":["c",1,null,true]}`), "password: ", "\n")
	f.Add([]byte(`{}`), "kind: Config\nusers:\n- token: ", "\nclusters: []")
	f.Add([]byte(`{}`), `{"a":"`, `"}`)
	f.Add([]byte(`{}`), "a: &x ", "\nb: *x\n<<: *x\n")
	rows, err := filepath.Glob("../*/testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, row := range rows {
		text, err := os.ReadFile(row)
		if err != nil {
			f.Fatal(err)
		}
		object, err := yaml.YAMLToJSON(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(object, "", "")
	}

	f.Fuzz(func(t *testing.T, object []byte, before, after string) {
		found, _ := credential.Scan(object) // whether it can be searched or not
		for _, finding := range found {
			if finding.Path == nil || finding.Form == "" {
				t.Errorf("a finding says too little: %v", finding)
			}
		}
		if strings.Contains(before+after, canary) || len(before)+len(after) > 1000 {
			return
		}
		around := func(secret string) string { return before + " " + secret + " " + after }
		for name, members := range map[string]map[string]any{
			"value":  {"b": around(gitHub)},
			"key":    {around(gitHub): "b"},
			"base64": {"b": around(std(gitHub))},
		} {
			raw, err := json.Marshal(map[string]any{"a": members})
			if err != nil {
				t.Fatal(err)
			}
			found, err := credential.Scan(raw)
			if err != nil || len(found) == 0 {
				t.Errorf("%s: nothing found in %s (%v)", name, raw, err)
			}
			for _, finding := range found {
				if strings.Contains(finding.Path.String(), canary) {
					t.Errorf("%s: the path %s quotes the secret", name, finding.Path)
				}
			}
		}
	})
}
