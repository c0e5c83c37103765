package rehearsal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func assertProblems(t *testing.T, err error, want []string) {
	t.Helper()
	var problems *Problems
	var got []string
	if errors.As(err, &problems) {
		got = problems.All
	} else if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestReadPolicies(t *testing.T) {
	const header = "apiVersion: registry.cellcast.io/v1alpha1\nkind: PlacementPolicy\n"
	for sentence, tt := range map[string]struct {
		content           string
		names             []string
		skipped, problems []string
	}{
		"reads each document, and passes over empty ones": {
			content: "# policies\n---\n" + header + "metadata: {name: a}\n---\n---\n" + header + "metadata: {name: b}\n",
			names:   []string{"a", "b"}},
		"reads JSON": {
			content: `{"apiVersion":"registry.cellcast.io/v1alpha1","kind":"PlacementPolicy","metadata":{"name":"a"}}`,
			names:   []string{"a"}},
		"reads what kubectl get -o yaml prints": {
			content: `{apiVersion: v1, kind: List, metadata: {resourceVersion: ""}, items: [{apiVersion: registry.cellcast.io/v1alpha1, kind: PlacementPolicy, metadata: {name: a, uid: x, managedFields: []}, status: {matchedClusters: 2}}]}`,
			names:   []string{"a"}},
		"reads a list of the kind": {
			content: `{apiVersion: registry.cellcast.io/v1alpha1, kind: PlacementPolicyList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}`,
			names:   []string{"a", "b"}},
		"skips other kinds and says so": {
			content: "kind: ConfigMap\napiVersion: v1\n---\nkind: Cluster\napiVersion: registry.cellcast.io/v1alpha1\nspec: {unknown: 1}\n---\nreplicas: 3\n---\n" + header + "metadata: {name: a}\n",
			names:   []string{"a"},
			skipped: []string{"f.yaml, document 1, which is a ConfigMap of v1", "f.yaml, document 2, which is a Cluster of registry.cellcast.io/v1alpha1", "f.yaml, document 3, which is of no kind"}},
		"refuses a field that isn't known": {
			content:  header + "metadata: {name: a}\nspec: {tokenTtl: {max: 15m}, allowDark: true}\n",
			problems: []string{`f.yaml, document 1: unknown field "spec.tokenTtl"`}},
		"refuses a field that comes twice": {
			content:  header + "metadata: {name: a}\nspec: {allowDark: true, allowDark: false}\n",
			problems: []string{`f.yaml, document 1: yaml: unmarshal errors: line 4: key "allowDark" already set in map`}},
		"refuses a policy of a version that isn't known": {
			content:  "apiVersion: registry.cellcast.io/v1\nkind: PlacementPolicy\n",
			problems: []string{`f.yaml, document 1: is a PlacementPolicy of registry.cellcast.io/v1, which this version doesn't know: it knows registry.cellcast.io/v1alpha1`}},
		"refuses a policy without a version": {
			content:  "kind: PlacementPolicy\n",
			problems: []string{`f.yaml, document 1: is a PlacementPolicy without an apiVersion: write registry.cellcast.io/v1alpha1`}},
		"refuses a value of another type": {
			content:  header + "spec: {allowDark: sure}\n",
			problems: []string{`f.yaml, document 1: json: cannot unmarshal string into Go struct field PlacementPolicySpec.spec.allowDark of type bool`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			rows, skipped, err := ReadPolicies([]File{{"f.yaml", []byte(tt.content)}})
			assertProblems(t, err, tt.problems)
			var names []string
			for _, row := range rows {
				names = append(names, row.Object.Name)
			}
			if diff := cmp.Diff(tt.names, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.skipped, skipped); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadCellsOfANewerServer(t *testing.T) {
	rows, skipped, err := ReadCells([]File{{"cells.yaml", []byte(`{apiVersion: v1, kind: List, items: [
		{apiVersion: registry.cellcast.io/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {state: DARK, fromTheFuture: 1}, status: {new: {}}},
		{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: b}}]}`)}})
	if err != nil || len(rows) != 1 || rows[0].Object.Name != "a" || rows[0].Object.Spec.State != "DARK" {
		t.Errorf("%+v, %v", rows, err)
	}
	if diff := cmp.Diff([]string{"cells.yaml, document 1, items[1], which is a Cluster of cluster.x-k8s.io/v1beta1"}, skipped); diff != "" {
		t.Error(diff)
	}
}

func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a/z.yml", "a/y.json", "a/README.md", ".git/config.yaml", ".hidden.yaml", "bare"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for sentence, tt := range map[string]struct{ paths, want []string }{
		"a folder is its rows, and those of its folders": {[]string{""}, []string{"a/y.json", "a/z.yml", "b.yaml"}},
		"a file is taken whatever its name":              {[]string{"bare"}, []string{"bare"}},
		"no file is taken twice":                         {[]string{"b.yaml", "./", "a"}, []string{"b.yaml", "a/y.json", "a/z.yml"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var paths []string
			for _, p := range tt.paths {
				paths = append(paths, dir+"/"+p)
			}
			files, err := ReadFiles(paths)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range files {
				got = append(got, string(f.Content))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := ReadFiles([]string{dir + "/none"}); err == nil || err.Error() != dir+"/none doesn't exist" {
		t.Errorf("got %v", err)
	}
}
