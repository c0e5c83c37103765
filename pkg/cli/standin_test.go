package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/decisions"
)

// earlier is a kubeconfig of an earlier run.
const earlier = "# Written by cellcast; an earlier run\n"

const (
	tableHead   = "CELL   POLICY     NAMESPACE   SERVICEACCOUNT   EXPIRES   SOURCE   CONFIDENCE\n"
	cachedTable = tableHead + "eu-1   payments   <none>      <none>           <none>    cache    stale\n"
	pinnedTable = "CELL   POLICY   NAMESPACE   SERVICEACCOUNT   EXPIRES   SOURCE   CONFIDENCE\n" +
		"eu-9   <none>   <none>      <none>           <none>    pinned   none\n"
)

var decided = decisions.Decision{
	Cell:   cellcastv1alpha1.CellReference{Name: "eu-1", Endpoint: "https://eu-1.example.com", CABundle: []byte("PEM")},
	Policy: "payments", DecidedAt: now.Add(-3 * time.Hour),
}

// decided puts a decision for payments/api into the cache.
func (c *caller) decided(d decisions.Decision) {
	c.t.Helper()
	if err := decisions.In(c.cache).Save(decisions.Key{Hub: c.hub.URL, Workload: "payments/api"}, d); err != nil {
		c.t.Fatal(err)
	}
}

// files is what is in the cache.
func (c *caller) files() map[string]string {
	c.t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(c.cache)
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	for _, entry := range entries {
		path := filepath.Join(c.cache, entry.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			c.t.Fatal(err)
		}
		found[path] = string(content)
	}
	return found
}

func excluded(cell string, stage cellcastv1alpha1.Stage, reason string) cellcastv1alpha1.Candidate {
	return cellcastv1alpha1.Candidate{Cell: cell, Verdict: cellcastv1alpha1.VerdictExcluded, Stage: stage, Reason: reason, Message: "it's so"}
}

func TestWhatIsSaidWhereAStanceAnswers(t *testing.T) {
	c := newCaller(t)
	c.decided(decided)
	c.hub.answers("refused/NoEligibleCells")
	c.hub.trace = []cellcastv1alpha1.Candidate{excluded("eu-1", "capacity", "DoesNotFit"), excluded("eu-2", "state", "Draining")}
	file := c.file("cell.kubeconfig", earlier)
	removed := "Removed " + file + ": it was for the cell of an earlier run.\n"
	why := "Warning: NoEligibleCells: the fake says so\nRequest id: " + requestID + "\n"
	for name, test := range map[string]struct {
		args []string
		want answerOf
	}{
		"a cell alone": {[]string{"-o", "name", "--on-unavailable", "last-known"}, answerOf{0, "cell.cellcast.io/eu-1\n", why +
			"Answered by --on-unavailable=last-known: eu-1, the hub's decision of 3h ago (source cache, confidence stale). A credential never falls back: there is none.\n"}},
		"a credential was asked for": {[]string{"--on-unavailable", "eu-1", "--write-kubeconfig", file}, answerOf{5,
			strings.NewReplacer("eu-9", "eu-1").Replace(pinnedTable), removed + why +
				"Answered by --on-unavailable=eu-1: eu-1, the cell that was named for this case (source pinned, confidence none). A credential never falls back: there is none.\n" +
				"Error: eu-1 was decided without the hub, and there is no credential for it: a credential never falls back\n" +
				"Use an access of your own to eu-1, or run this again when the hub decides; -o name and --dry-run ask for the cell alone.\n"}},
		"with the hub's trace": {[]string{"--explain", "--on-unavailable", "last-known"}, answerOf{0, cachedTable + "\n" +
			"CELL   VERDICT    STAGE      REASON       UTILISATION   REPORT-AGE   MESSAGE\n" +
			"eu-1   Excluded   capacity   DoesNotFit   <none>        <none>       it's so\n" +
			"eu-2   Excluded   state      Draining     <none>        <none>       it's so\n" +
			"\n2 more cells are registered that you may not reach.\n", why +
			"Answered by --on-unavailable=last-known: eu-1, the hub's decision of 3h ago (source cache, confidence stale). A credential never falls back: there is none.\n"}},
		"nothing, for the hub ruled the cell out": {[]string{"--explain", "--on-unavailable", "eu-2"}, answerOf{4, "",
			"Error: NoEligibleCells: the fake says so\n" +
				"--on-unavailable=eu-2 doesn't answer this: eu-2 isn't used: it's so (Draining)\n" +
				"Retry later; cellcast cells shows the state of each cell that you may reach. The hub says to wait 30s.\n" +
				"Request id: " + requestID + "\n\n" +
				"CELL   VERDICT    STAGE      REASON       UTILISATION   REPORT-AGE   MESSAGE\n" +
				"eu-1   Excluded   capacity   DoesNotFit   <none>        <none>       it's so\n" +
				"eu-2   Excluded   state      Draining     <none>        <none>       it's so\n" +
				"\n2 more cells are registered that you may not reach.\n"}},
		"nothing, for the caller may not know the cell": {[]string{"--on-unavailable", "eu-3"}, answerOf{4, "",
			"Error: NoEligibleCells: the fake says so\n" +
				"--on-unavailable=eu-3 doesn't answer this: eu-3 isn't used: it isn't among the cells that you may reach\n" +
				"Retry later; cellcast cells shows the state of each cell that you may reach. The hub says to wait 30s.\n" +
				"Request id: " + requestID + "\n"}},
		"nothing, for this runner has no decision": {[]string{"--dark", "--on-unavailable", "last-known"}, answerOf{4, "",
			"Error: NoEligibleCells: the fake says so\n" +
				"--on-unavailable=last-known doesn't answer this: there is no decision of an earlier run for \"payments/api\" at " + c.hub.URL + " in " + c.cache +
				". Keep that folder from one run to the next (--cache-dir or $CELLCAST_CACHE_DIR), or name a cell: --on-unavailable=CELL\n" +
				"Retry later; cellcast cells shows the state of each cell that you may reach. The hub says to wait 30s.\n" +
				"Request id: " + requestID + "\n"}},
		"nothing, for the decision is too old": {[]string{"--on-unavailable", "last-known", "--cache-ttl", "2h"}, answerOf{4, "",
			"Error: NoEligibleCells: the fake says so\n" +
				"--on-unavailable=last-known doesn't answer this: the last decision is of 2026-01-02T00:04:05Z and counts for 2h0m0s (--cache-ttl)\n" +
				"Retry later; cellcast cells shows the state of each cell that you may reach. The hub says to wait 30s.\n" +
				"Request id: " + requestID + "\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.run(append([]string{"cellcast", "place", "payments/api"}, test.args...)...)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The hub that goes away has still said what it said.
func TestARefusalCountsThoughTheHubGoesAwayAfterIt(t *testing.T) {
	for name, test := range map[string]struct {
		word string
		says string
	}{
		"a cell that it ruled out": {"refused/CapacityUnknown", "eu-9 isn't used: it's so (Draining)"},
		"a mint that failed":       {"refused/MintUnavailable", "it stands in for a hub that can't decide, and is no way past MintUnavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t)
			c.hub.answers(test.word)
			c.hub.trace = []cellcastv1alpha1.Candidate{excluded("eu-9", "state", "Draining")}
			c.sleep = c.hub.Close
			got := c.run("cellcast", "place", "payments/api", "--dry-run", "--on-unavailable", "eu-9")
			if got.code != 4 || got.out != "" || !strings.Contains(got.err, "connection refused") ||
				strings.Contains(got.err, "Request id: ") || // nobody answered the last question
				!strings.Contains(got.err, "--on-unavailable=eu-9 doesn't answer this: "+test.says+"\n") {
				t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
			}
		})
	}
}

func TestARunKeepsItsDecisionAndNeverItsCredential(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		keep bool
	}{
		"for a file":         {[]string{"--write-kubeconfig", "FILE"}, true},
		"for JSON":           {[]string{"-o", "json"}, true},
		"for the name":       {[]string{"-o", "name"}, true},
		"for the table":      {nil, true},
		"not for a dry run":  {[]string{"--dry-run"}, false},
		"not for its JSON":   {[]string{"--dry-run", "-o", "json"}, false},
		"by the environment": {[]string{"ENV"}, true},
		"by the flag":        {[]string{"--cache-dir", "DIR"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t)
			args := []string{"cellcast", "place", "payments/api"}
			for _, arg := range test.args {
				switch arg {
				case "ENV":
					c.cache = filepath.Join(c.dir, "other")
					c.env["CELLCAST_CACHE_DIR"] = c.cache
				case "DIR":
					c.cache = filepath.Join(c.dir, "other")
					args = append(args, c.cache)
				default:
					args = append(args, strings.ReplaceAll(arg, "FILE", filepath.Join(c.dir, "cell.kubeconfig")))
				}
			}
			if got := c.run(args...); got.code != 0 || strings.Contains(got.err, "Warning") {
				t.Fatalf("exit %d: %s", got.code, got.err)
			}
			files := c.files()
			if (len(files) == 1) != test.keep || !test.keep && len(files) != 0 {
				t.Errorf("files: %v", files)
			}
			for path, content := range files {
				if strings.Contains(content, "SECRET") || !strings.Contains(content, `"name": "eu-1"`) {
					t.Errorf("%s is\n%s", path, content)
				}
			}
			if _, err := decisions.In(c.cache).Last(decisions.Key{Hub: c.hub.URL, Workload: "payments/api"}, now, time.Hour); (err == nil) != test.keep {
				t.Errorf("the decision: %v", err)
			}
		})
	}
}

// A decision, then the hub goes away: what last-known is for. The outage doesn't
// make the decision younger.
func TestLastKnownIsTheDecisionOfTheLastRun(t *testing.T) {
	c := newCaller(t)
	if got := c.run("cellcast", "place", "payments/api", "--write-kubeconfig", filepath.Join(c.dir, "f")); got.code != 0 {
		t.Fatal(got.err)
	}
	before := c.files()
	c.hub.Close()
	for range 2 {
		got := c.run("cellcast", "place", "payments/api", "--dry-run", "--on-unavailable=last-known")
		if got.code != 0 || got.out != cachedTable {
			t.Errorf("exit %d\n%s%s", got.code, got.out, got.err)
		}
	}
	if diff := cmp.Diff(before, c.files()); diff != "" {
		t.Errorf("the cache was changed (-before +after):\n%s", diff)
	}
}

func TestADecisionThatCannotBeKeptDoesNotFailTheRun(t *testing.T) {
	c := newCaller(t)
	c.env["CELLCAST_CACHE_DIR"] = c.file("not-a-folder", "")
	got := c.run("cellcast", "place", "payments/api", "-o", "json")
	if got.code != 0 || !strings.HasPrefix(got.err, "Warning: the decision isn't kept for --on-unavailable=last-known: mkdir ") {
		t.Errorf("exit %d: %s", got.code, got.err)
	}
}

func TestAUserWithoutAFolderForCaches(t *testing.T) {
	c := newCaller(t)
	c.cache = ""
	if got := c.run("cellcast", "place", "payments/api", "-o", "json"); got.code != 0 || got.err != "" {
		t.Errorf("exit %d: %s", got.code, got.err)
	}
	got := c.run("cellcast", "place", "gateway", "--on-unavailable", "last-known")
	if got.code != 4 || !strings.Contains(got.err, "doesn't answer this: there is no folder for decisions: name one with --cache-dir: no home\n") {
		t.Errorf("exit %d: %s", got.code, got.err)
	}
}

// The Status that is printed is the hub's whole, its trace included.
func TestTheTraceOfARefusalIsInItsJSON(t *testing.T) {
	c := newCaller(t)
	c.hub.trace = []cellcastv1alpha1.Candidate{excluded("eu-2", "state", "Draining")}
	var status metav1.Status
	if err := json.Unmarshal([]byte(c.run("cellcast", "place", "refused/NoEligibleCells", "-o", "json").out), &status); err != nil {
		t.Fatal(err)
	}
	want := []metav1.StatusCause{
		{Type: "NoEligibleCells", Message: "the fake says so"},
		{Type: "Candidate", Field: "eu-2", Message: "Excluded/state/Draining: it's so"},
		{Type: "HiddenCells", Message: "2"},
	}
	if diff := cmp.Diff(want, status.Details.Causes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALongTraceSaysThatItIsCut(t *testing.T) {
	c := newCaller(t)
	for range 258 {
		c.hub.trace = append(c.hub.trace, excluded("eu-2", "state", "Draining"))
	}
	got := c.run("cellcast", "place", "refused/NoEligibleCells", "--explain")
	if !strings.HasSuffix(got.err, "\n\nThe hub's answer had no room for 2 more of the cells that you may reach.\n") {
		t.Errorf("stderr ends with\n%s", got.err[max(0, len(got.err)-300):])
	}
}
