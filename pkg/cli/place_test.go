package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

func TestATokenIsMintedOnlyWhereItGoesSomewhere(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		mints bool
		// shows says that the token is in the output.
		shows bool
		err   string
	}{
		"not for the table":                 {nil, false, false, "No credential was minted: --write-kubeconfig FILE or -o json gets one.\n"},
		"not for the table that explains":   {[]string{"--explain"}, false, false, "No credential was minted: --write-kubeconfig FILE or -o json gets one.\n"},
		"not for the name":                  {[]string{"-o", "name"}, false, false, "Decided by the hub, with confidence high.\nNo credential was minted: --write-kubeconfig FILE or -o json gets one.\n"},
		"for JSON":                          {[]string{"-o", "json"}, true, true, ""},
		"for YAML":                          {[]string{"-o", "yaml"}, true, true, ""},
		"not for the JSON of a dry run":     {[]string{"-o", "json", "--dry-run"}, false, false, "Dry run: no credential was minted.\n"},
		"not for the table of a dry run":    {[]string{"--dry-run=server"}, false, false, "Dry run: no credential was minted.\n"},
		"for a file, beside the table":      {[]string{"--write-kubeconfig", "FILE"}, true, false, wrote},
		"for a file, beside the name":       {[]string{"--write-kubeconfig", "FILE", "-o", "name"}, true, false, "Decided by the hub, with confidence high.\n" + wrote},
		"for a file alone, beside the JSON": {[]string{"--write-kubeconfig", "FILE", "-o", "json"}, true, false, wrote},
		"for a file alone, beside the YAML": {[]string{"--write-kubeconfig", "FILE", "-o", "yaml"}, true, false, wrote},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t)
			file := filepath.Join(c.dir, "cell.kubeconfig")
			args := []string{"cellcast", "place", "payments/api"}
			for _, arg := range test.args {
				args = append(args, strings.ReplaceAll(arg, "FILE", file))
			}
			got := c.run(args...)
			if got.code != 0 {
				t.Fatalf("exit %d: %s", got.code, got.err)
			}
			inFile := strings.HasSuffix(test.err, wrote)
			if inFile {
				test.err = strings.ReplaceAll(test.err, "FILE", file)
			}
			if got.err != test.err {
				t.Errorf("stderr is %q, want %q", got.err, test.err)
			}
			if asked, minted := c.hub.counts(); asked != 1 || (minted == 1) != test.mints {
				t.Errorf("asked %d, minted %d times", asked, minted)
			}
			if strings.Contains(got.out, mintedToken) != test.shows || strings.Contains(got.err, mintedToken) {
				t.Errorf("the token shows:\n%s%s", got.out, got.err)
			}
			content, _ := os.ReadFile(file)
			if strings.Contains(string(content), mintedToken) != inFile {
				t.Errorf("the file is %q", content)
			}
		})
	}
}

const wrote = "Wrote FILE with a credential for eu-1 until 2026-01-02T03:19:05Z: kubectl --kubeconfig FILE\n"

func TestWhatAHubSendsUnaskedIsNotShown(t *testing.T) {
	c := newCaller(t)
	got := c.run("cellcast", "place", "overeager", "--dry-run", "-o", "yaml")
	if got.code != 0 || strings.Contains(got.out, mintedToken) {
		t.Errorf("exit %d\n%s", got.code, got.out)
	}
}

func TestAnAnswerDoesNotDriveTheTerminal(t *testing.T) {
	c := newCaller(t)
	want := "CELL   POLICY           NAMESPACE   SERVICEACCOUNT   EXPIRES   SOURCE   CONFIDENCE\n" +
		"eu-1    [2Jpay ments    <none>      <none>           <none>    hub      high\n"
	if diff := cmp.Diff(want, c.run("cellcast", "place", "hostile").out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheAnswerWholeIsAPlacement(t *testing.T) {
	c := newCaller(t)
	var asJSON, asYAML cellcastv1alpha1.Placement
	if err := json.Unmarshal([]byte(c.run("cellcast", "place", "payments/api", "-o", "json").out), &asJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(c.run("cellcast", "place", "payments/api", "-o", "yaml").out), &asYAML); err != nil {
		t.Fatal(err)
	}
	if asJSON.Kind != "Placement" || asJSON.APIVersion != "cellcast.io/v1alpha1" || asJSON.Status.Credential.Token != mintedToken {
		t.Errorf("got %+v", asJSON)
	}
	if diff := cmp.Diff(asJSON, asYAML); diff != "" {
		t.Errorf("JSON and YAML differ (-JSON +YAML):\n%s", diff)
	}
}

func TestTheQuestionIsWhatTheFlagsSay(t *testing.T) {
	c := newCaller(t)
	var answer cellcastv1alpha1.Placement
	got := c.run("cellcast", "place", "--workload", "payments/api", "--ttl", "15m", "--dark", "--explain", "--requests", "cpu=2,memory=4Gi", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(answer.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `dark: true
explain: true
resources:
  cpu: "2"
  memory: 4Gi
ttl: 15m0s
workload: payments/api
`
	if diff := cmp.Diff(want, string(spec)); diff != "" {
		t.Errorf("the question (-want +got):\n%s", diff)
	}
}

// After a run that named a file, there is this run's credential or none.
func TestAFailedRunLeavesNoCredential(t *testing.T) {
	const earlier = "# Written by cellcast; an earlier run\n"
	for name, test := range map[string]struct {
		args []string
		env  string // this variable is taken away
		gone bool
	}{
		"when it's refused":                        {args: []string{"place", "refused/NoPolicy"}, gone: true},
		"when the hub is unavailable":              {args: []string{"place", "gateway"}, gone: true},
		"when no credential comes with the answer": {args: []string{"place", "tokenless"}, gone: true},
		"when the way to the hub isn't clear":      {args: []string{"place", "x"}, env: "CELLCAST_TOKEN_FILE", gone: true},
		"but a wrong flag touches nothing":         {args: []string{"place", "x", "--bogus"}},
		"but a wrong value touches nothing":        {args: []string{"place", "x", "--requests", "cpu=lots"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t)
			delete(c.env, test.env)
			file := c.file("cell.kubeconfig", earlier)
			before, _ := os.ReadDir(c.dir)
			got := c.run(append([]string{"cellcast"}, append(test.args, "--write-kubeconfig", file)...)...)
			if got.code == 0 {
				t.Fatal("the run succeeded")
			}
			content, err := os.ReadFile(file)
			if os.IsNotExist(err) != test.gone || !test.gone && string(content) != earlier {
				t.Errorf("the file is %q, %v", content, err)
			}
			if said := strings.HasPrefix(again.ReplaceAllString(got.err, ""), "Removed "+file+": it was for the cell of an earlier run.\n"); said != test.gone {
				t.Errorf("stderr is %q", got.err)
			}
			after, _ := os.ReadDir(c.dir)
			if gone := len(before) - len(after); gone != map[bool]int{true: 1, false: 0}[test.gone] {
				t.Errorf("files after the run: %v", after)
			}
		})
	}
}

func TestAFileThatCannotBeWrittenStopsTheQuestion(t *testing.T) {
	c := newCaller(t)
	mine := c.file("config", "apiVersion: v1\nkind: Config\n")
	got := c.run("cellcast", "place", "x", "--write-kubeconfig", mine)
	want := answerOf{1, "", "Error: " + mine + " exists and wasn't written by cellcast: it's left as it is; name another file\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked, _ := c.hub.counts(); asked != 0 {
		t.Error("the hub was asked for a credential that had no place")
	}
}
