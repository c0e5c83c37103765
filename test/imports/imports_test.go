// Package imports holds the rule of who may import whom, read from the import
// graph as the go command knows it.
package imports

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "cellcast.io/cellcast/"

// pure packages decide on values; a client or a clock in them would hide an
// input of the decision.
var pure = []string{"pkg/audit", "pkg/policy", "pkg/capacity", "pkg/placement", "pkg/seal", "pkg/revocation", "pkg/cli/stance",
	"pkg/kubeconfig", "pkg/kubeconfig/address", "pkg/probe/contract", "pkg/shell"}

// minting is what a program on every cell, or on a runner, must not contain:
// then no flaw in it can mint.
var minting = []string{
	module + "pkg/mint", module + "pkg/cell", module + "pkg/rest",
	"k8s.io/apiserver", "sigs.k8s.io/controller-runtime",
}

func TestImports(t *testing.T) {
	type rule struct {
		from   string
		banned []string
		why    string
	}
	rules := []rule{
		{"cmd/cellcast-agent", minting, "the agent runs in every cell, the largest attack surface there is"},
		{"cmd/cellcast", minting, "the client is fetched by every pipeline: it stays small and can't mint"},
		{"apis/registry/v1alpha1", []string{"k8s.io/client-go", module + "pkg"}, "types carry no client and no rule of the hub's"},
		{"apis/cellcast/v1alpha1", []string{"k8s.io/client-go", module + "pkg"}, "types carry no client and no rule of the hub's"},
		{"pkg/keyset", []string{module + "pkg/caller", module + "pkg/cell", module + "pkg/mint"}, "capabilities don't import each other"},
		{"pkg/mint", []string{module + "pkg/caller", module + "pkg/mirror", module + "pkg/rest"}, "minting knows a cell and a scope, not who asks"},
		{"pkg/podidentity", []string{module + "pkg/caller", module + "pkg/cell", module + "pkg/mint", module + "pkg/rest"}, "who a pod is has nothing to do with who may place"},
		{"pkg/ingest", []string{module + "pkg/caller", module + "pkg/cell", module + "pkg/mint", module + "pkg/rest"}, "the internet reaches it: it knows pods, and what they hand in"},
		{"pkg/custody", []string{module + "pkg/caller", module + "pkg/cell", module + "pkg/mint", module + "pkg/rest", module + "pkg/probe"}, "custody reads credentials and shows them to nobody"},
		{"pkg/probe", []string{module + "pkg/cell/celltest", module + "pkg/caller", module + "pkg/mint", module + "pkg/rest", module + "pkg/custody", "k8s.io/client-go"}, "the checklist asks an API and knows neither the row nor the credential"},
		{"pkg/peers", []string{module + "pkg/caller", module + "pkg/cell", module + "pkg/mint", module + "pkg/rest", module + "pkg/policy"}, "peers tell capacity; who they are and what comes of it is others' to say"},
		{"pkg/events", []string{module + "pkg/caller", module + "pkg/cell", module + "pkg/mint", module + "pkg/rest"}, "Events show what was recorded and know nothing else"},
		{"pkg/metrics", []string{module + "pkg/caller", module + "pkg/cell", module + "pkg/mint", module + "pkg/rest"}, "metrics count what was recorded and know nothing else"},
		{"pkg/mirror", []string{module + "pkg/cell", module + "pkg/mint", module + "pkg/caller"}, "the internet reaches the mirror: it must be able to do nothing else"},
	}
	for _, p := range pure {
		rules = append(rules, rule{p, []string{"k8s.io/client-go", "k8s.io/apiserver"}, "a decision is values in, value out"})
	}

	for _, r := range rules {
		t.Run(r.from, func(t *testing.T) {
			deps := list(t, "-deps", "./"+r.from)
			for _, banned := range r.banned {
				if strings.HasPrefix(banned, module) && !exists(t, banned) {
					t.Errorf("%s is banned from %s and doesn't exist: the rule holds nothing", banned, r.from)
				}
				for _, dep := range deps {
					if dep == banned || strings.HasPrefix(dep, banned+"/") {
						t.Errorf("%s reaches %s, though %s", r.from, dep, r.why)
					}
				}
			}
		})
	}
}

// The types of apimachinery reach net/http themselves, so only what a pure
// package imports by its own hand can be held.
func TestPurePackagesImportNoHTTP(t *testing.T) {
	for _, p := range pure {
		for _, imported := range list(t, "-f", `{{join .Imports "\n"}}`, "./"+p) {
			if imported == "net/http" || imported == "os" || imported == "net" {
				t.Errorf("%s imports %s, though a decision is values in, value out", p, imported)
			}
		}
	}
}

func exists(t *testing.T, path string) bool {
	return len(list(t, "-e", "-find", path+"/...")) > 0
}

func list(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = "../.."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, stderr.String())
	}
	return strings.Fields(string(out))
}
