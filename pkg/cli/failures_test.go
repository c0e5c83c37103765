package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
)

// failures are all ways to get no decision, whether a stance may answer (the
// table of ADR-006), and the exit code where none does.
var failures = map[string]struct {
	word   string
	before func(*caller)
	stands bool
	exit   int
}{
	"NoPolicy":               {"refused/NoPolicy", nil, false, 3},
	"DarkNotPermitted":       {"refused/DarkNotPermitted", nil, false, 3},
	"CellChoiceNotPermitted": {"refused/CellChoiceNotPermitted", nil, false, 3},
	"NoPermittedCells":       {"refused/NoPermittedCells", nil, false, 3},
	"InvalidRequest":         {"refused/InvalidRequest", nil, false, 3},
	"NoEligibleCells":        {"refused/NoEligibleCells", nil, true, 4},
	"CapacityUnknown":        {"refused/CapacityUnknown", nil, true, 4},
	"PlacementUnavailable":   {"refused/PlacementUnavailable", nil, true, 4},
	"MintUnavailable":        {"refused/MintUnavailable", nil, false, 5},
	"MintFailed":             {"refused/MintFailed", nil, false, 5},
	"RateLimited":            {"refused/RateLimited", nil, true, 4},
	"a bare 429":             {"throttled", nil, true, 4},
	"a gateway's 502":        {"502", nil, true, 4},
	"a gateway's 503":        {"gateway", nil, true, 4},
	"a gateway's 504":        {"504", nil, true, 4},
	"half an answer":         {"cut", nil, true, 4},
	"no connection":          {"", func(c *caller) { c.hub.Close() }, true, 4},
	"no trust":               {"", func(c *caller) { delete(c.env, "CELLCAST_HUB_CA") }, false, 1},
	"401":                    {"unauthorized", nil, false, 3},
	"403 of RBAC":            {"forbidden", nil, false, 3},
	"404":                    {"missing", nil, false, 1},
	"500":                    {"fault", nil, false, 1},
	"a newer refusal":        {"newer-unavailable", nil, false, 3},
	"a token in the clear":   {"unsealed", nil, false, 1},
	"no token file":          {"", func(c *caller) { c.env["CELLCAST_TOKEN_FILE"] = "nowhere" }, false, 1},
}

// caches are the states in which the decisions of earlier runs can be.
var caches = map[string]func(*caller){
	"none":  func(*caller) {},
	"fresh": func(c *caller) { c.decided(decided) },
	"expired": func(c *caller) {
		old := decided
		old.DecidedAt = now.Add(-24 * time.Hour)
		c.decided(old)
	},
	"damaged": func(c *caller) {
		c.decided(decided)
		for path := range c.files() {
			if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
				c.t.Fatal(err)
			}
		}
	},
}

// Every failure, under every stance, with every cache, asking for a credential
// and not: the exit code, the answer, and the kubeconfig of an earlier run.
func TestWhichFailuresAStanceAnswers(t *testing.T) {
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			for stance, states := range map[string][]string{"fail": {"fresh"}, "eu-9": {"none"}, "last-known": {"none", "fresh", "expired", "damaged"}} {
				for _, state := range states {
					stands := failure.stands && (stance == "eu-9" || stance == "last-known" && state == "fresh")
					for _, mode := range []string{"--dry-run", "-o=json", "--write-kubeconfig"} {
						if failure.word == "unsealed" && mode == "--dry-run" {
							continue // nothing to seal
						}
						t.Run(stance+" "+state+" "+mode, func(t *testing.T) {
							c := newCaller(t)
							caches[state](c)
							c.hub.answers(failure.word)
							c.hub.trace = []cellcastv1alpha1.Candidate{excluded("eu-1", "capacity", "Stale"), excluded("eu-9", "capacity", "NeverReported")}
							if failure.before != nil {
								failure.before(c)
							}
							workload := "payments/api"
							if failure.word == "unsealed" {
								workload = "unsealed"
							}
							c.checkStance(workload, stance, mode, stands, failure.exit)
						})
					}
				}
			}
		})
	}
}

// checkStance runs a place that gets no decision from the hub.
func (c *caller) checkStance(workload, stance, mode string, stands bool, exit int) {
	c.t.Helper()
	before := c.files()
	file := c.file("cell.kubeconfig", earlier)
	args := []string{"cellcast", "place", workload, "--timeout", "5s", mode}
	if mode == "--write-kubeconfig" {
		args = append(args, file)
	}
	if stance != "fail" {
		args = append(args, "--on-unavailable", stance)
	}
	got := c.run(args...)

	mints := mode == "-o=json" || mode == "--write-kubeconfig"
	switch {
	case stands && mints:
		exit = 5
	case stands:
		exit = 0
	}
	if got.code != exit {
		c.t.Errorf("exit %d, want %d", got.code, exit)
	}
	if diff := cmp.Diff(wantOut(stance, mode, stands), outOf(c.t, mode, got.out)); diff != "" {
		c.t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if said := strings.Contains(got.err, "Answered by --on-unavailable="+stance+": "); said != stands {
		c.t.Errorf("stderr is\n%s", got.err)
	}
	if said := strings.Contains(got.err, "--on-unavailable="+stance+" doesn't answer this: "); said != (!stands && stance != "fail" && !strings.Contains(got.err, "nowhere")) {
		c.t.Errorf("stderr is\n%s", got.err)
	}
	if _, err := os.Stat(file); os.IsNotExist(err) != (mode == "--write-kubeconfig") {
		c.t.Errorf("the kubeconfig of an earlier run: %v", err)
	}
	if diff := cmp.Diff(before, c.files()); diff != "" {
		c.t.Errorf("the cache was changed (-before +after):\n%s", diff)
	}
}

// outOf is an output to compare: of JSON the status of a Placement, or the kind.
func outOf(t *testing.T, mode, out string) string {
	t.Helper()
	if mode != "-o=json" {
		return out
	}
	var p cellcastv1alpha1.Placement
	if err := json.Unmarshal([]byte(out), &p.TypeMeta); err != nil || p.Kind == "Status" {
		return p.Kind
	}
	if err := json.Unmarshal([]byte(out), &p); err != nil || p.Spec.Workload != "payments/api" || p.Spec.Recipient != nil {
		t.Errorf("%v in\n%s", err, out)
	}
	status, _ := json.Marshal(p.Status)
	return p.CreationTimestamp.UTC().Format(time.RFC3339) + string(status)
}

func wantOut(stance, mode string, stands bool) string {
	switch {
	case mode == "-o=json" && !stands:
		return "Status"
	case !stands:
		return ""
	case mode == "-o=json" && stance == "eu-9":
		return `0001-01-01T00:00:00Z{"cell":{"name":"eu-9","endpoint":""},"source":"pinned","confidence":"none"}`
	case mode == "-o=json":
		return `2026-01-02T00:04:05Z{"cell":{"name":"eu-1","endpoint":"https://eu-1.example.com","caBundle":"UEVN"},"policy":"payments","source":"cache","confidence":"stale"}`
	case stance == "eu-9":
		return pinnedTable
	default:
		return cachedTable
	}
}
