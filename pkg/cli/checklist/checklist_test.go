package checklist

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

const applies = "kubectl apply -n payments -f - <<'EOF'\nkind: Role\nEOF\n"

// run is a probe that fails at its permissions.
func run(ended int) []registryv1alpha1.TargetCheck {
	checks := []registryv1alpha1.TargetCheck{
		{Name: registryv1alpha1.CheckCredential, Result: registryv1alpha1.CheckPassed, Message: "the kubeconfig in Secret payments/eu-kubeconfig is of the closed form"},
		{Name: registryv1alpha1.CheckReachable, Result: registryv1alpha1.CheckPassed},
		{Name: registryv1alpha1.CheckAuthenticated, Result: registryv1alpha1.CheckWarning, Message: "the token ends in a day", Remedy: "cellcast target register eu"},
		{Name: registryv1alpha1.CheckNamespace, Result: registryv1alpha1.CheckPassed, Message: "namespace 支払い\x1b[2J is there"},
		{Name: registryv1alpha1.CheckPermissions, Result: registryv1alpha1.CheckFailed, Message: "1 of 9 is missing", Remedy: applies,
			Items: []registryv1alpha1.TargetCheckItem{
				{Name: "create pods", Result: registryv1alpha1.CheckPassed},
				{Name: "delete pods", Result: registryv1alpha1.CheckFailed},
			}},
		{Name: registryv1alpha1.CheckExcess, Result: registryv1alpha1.CheckSkipped, Message: "it comes after one that failed"},
		{Name: registryv1alpha1.CheckTokens, Result: registryv1alpha1.CheckSkipped, Message: "the credential may not mint", Remedy: "kubectl create role tokens"},
	}
	return checks[:ended]
}

// window writes a terminal's output with its steps and its codes in the open.
type window struct{ shown strings.Builder }

func (w *window) Write(p []byte) (int, error) {
	w.shown.WriteString("-- drawn --\n" + strings.NewReplacer("\x1b", "ESC", "\r", "CR").Replace(string(p)))
	return len(p), nil
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func show(t *testing.T, l *List) {
	t.Helper()
	for _, step := range []struct {
		ended int
		now   Phase
	}{{0, Asked}, {0, Begun}, {3, Begun}, {4, Begun}, {7, Over}} {
		if err := l.Show(run(step.ended), step.now); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnATerminalTheListIsDrawnInPlace(t *testing.T) {
	var out window
	show(t, New(&out, func() (int, int) { return 60, 24 }))
	golden(t, "terminal.txt", out.shown.String())
}

func TestElsewhereEachItemIsWrittenOnceAsItEnds(t *testing.T) {
	var out strings.Builder
	show(t, New(&out, nil))
	golden(t, "plain.txt", out.String())
}

func TestAWindowThatIsTooSmallGetsThePlainList(t *testing.T) {
	for name, size := range map[string]Size{
		"in height": func() (int, int) { return 80, 13 },
		"in width":  func() (int, int) { return 19, 50 },
		"unknown":   func() (int, int) { return 0, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			show(t, New(&out, size))
			golden(t, "plain.txt", out.String())
		})
	}
}

func TestNoLineIsWiderThanTheWindow(t *testing.T) {
	for width := 20; width < 90; width++ {
		var out strings.Builder
		l := New(&out, func() (int, int) { return width, 24 })
		if err := l.Show(run(6), Begun); err != nil {
			t.Fatal(err)
		}
		for text := range strings.Lines(out.String()) {
			if n := columns(strings.TrimSuffix(text, "\n")); n >= width {
				t.Errorf("%d columns in a window of %d: %q", n, width, text)
			}
		}
	}
}

func TestWhatComesInBetweenIsNotDrawnOver(t *testing.T) {
	var out strings.Builder
	l := New(&out, func() (int, int) { return 80, 24 })
	if err := l.Show(run(1), Begun); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Aside(&out).Write([]byte("a note\n")); err != nil {
		t.Fatal(err)
	}
	if err := l.Show(run(1), Begun); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b[") || !strings.Contains(out.String(), "\na note\nPassed   Credential") {
		t.Errorf("got %q", out.String())
	}
}

// Lines that wrapped as the window became narrower take more rows.
func TestAListIsFoundAgainInANarrowerWindow(t *testing.T) {
	var out strings.Builder
	width := 80
	l := New(&out, func() (int, int) { return width, 24 })
	if err := l.Show(run(1), Begun); err != nil { // its first line has 77 columns
		t.Fatal(err)
	}
	out.Reset()
	width = 40
	if err := l.Show(run(1), Begun); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "\x1b[13A\r\x1b[J") {
		t.Errorf("it goes up otherwise than by 13 rows: %q", out.String()[:12])
	}
}

func TestWhatANewerHubKnowsIsShownToo(t *testing.T) {
	checks := append([]registryv1alpha1.TargetCheck{{Name: "Gravity", Result: "Doubtful", Message: "look", Remedy: "kubectl fix"}}, run(1)...)
	var out strings.Builder
	if err := New(&out, nil).Show(checks, Over); err != nil {
		t.Fatal(err)
	}
	want := "Passed   Credential: the kubeconfig in Secret payments/eu-kubeconfig is of the closed form\nDoubtful Gravity: look\n         kubectl fix\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Waiting(checks); slices.Contains(got, registryv1alpha1.CheckCredential) || len(got) != len(registryv1alpha1.TargetChecks())-1 {
		t.Errorf("waiting: %v", got)
	}
}

// A remedy names files that nothing else on the screen speaks of.
func TestTheFilesThatARemedyNamesAreToldOfBelowTheList(t *testing.T) {
	const own, closed = "The file kubeconfig is your own for the target.\n", "FILE is a kubeconfig of the closed form: server, CA and token.\n"
	failed := registryv1alpha1.CheckFailed
	for name, test := range map[string]struct {
		check registryv1alpha1.TargetCheck
		want  string
	}{
		"a command for the target":       {registryv1alpha1.TargetCheck{Result: failed, Remedy: "kubectl --kubeconfig kubeconfig get pods"}, own},
		"a manifest for it":              {registryv1alpha1.TargetCheck{Result: failed, Remedy: "kubectl --kubeconfig kubeconfig apply -f - <<'EOF'\nkind: Role\nEOF"}, own},
		"register":                       {registryv1alpha1.TargetCheck{Result: failed, Remedy: "cellcast target register eu -f kubeconfig -n payments"}, own},
		"a Secret to be put":             {registryv1alpha1.TargetCheck{Result: failed, Remedy: "kubectl create secret generic mine --from-file=kubeconfig=FILE"}, closed},
		"a Secret that an item tells of": {registryv1alpha1.TargetCheck{Result: failed, Message: "Put it there: vault kv put -mount=MOUNT eu kubeconfig=@FILE, with the mount"}, closed},
		"what was skipped":               {registryv1alpha1.TargetCheck{Result: registryv1alpha1.CheckSkipped, Remedy: "kubectl --kubeconfig kubeconfig get pods"}, own},
		"a command for the hub":          {registryv1alpha1.TargetCheck{Result: failed, Message: "The kubeconfig isn't taken", Remedy: "kubectl edit clustertarget eu"}, ""},
		"a remedy that isn't shown":      {registryv1alpha1.TargetCheck{Result: registryv1alpha1.CheckPassed, Remedy: "kubectl --kubeconfig kubeconfig get pods"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.check.Name = registryv1alpha1.CheckCredential
			checks := []registryv1alpha1.TargetCheck{test.check}
			for _, size := range []Size{nil, func() (int, int) { return 80, 24 }} {
				var begun, over strings.Builder
				l := New(&begun, size)
				if err := l.Show(checks, Begun); err != nil {
					t.Fatal(err)
				}
				l.out = &over
				if err := l.Show(checks, Over); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(begun.String(), own) || strings.Contains(begun.String(), closed) {
					t.Errorf("it's told before the list ends:\n%s", begun.String())
				}
				told := ""
				for _, line := range []string{own, closed} {
					if strings.HasSuffix(over.String(), line) {
						told = line
					}
				}
				if diff := cmp.Diff(test.want, told); diff != "" {
					t.Errorf("(-want +got):\n%s\n%s", diff, over.String())
				}
			}
		})
	}
	both := files([]registryv1alpha1.TargetCheck{{Result: failed, Remedy: "cellcast target register eu -f kubeconfig"}, {Result: failed, Remedy: "FILE"}})
	if diff := cmp.Diff(strings.TrimSuffix(own, "\n")+" "+closed, both); diff != "" {
		t.Errorf("both (-want +got):\n%s", diff)
	}
}
