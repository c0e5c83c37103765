package targets

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe/contract"
)

// fault is something that is wrong with a target, what the probe says of it, and
// how its owner mends it.
type fault struct {
	sentence string
	// breaks comes before the target is registered. It may register the credential
	// in its own way, and then returns true.
	breaks func(b *brought) (kept bool)
	spec   func(b *brought, spec *registryv1alpha1.ClusterTargetSpec)
	// meanwhile comes after the target is registered.
	meanwhile func(b *brought)

	check  registryv1alpha1.TargetCheckName
	result registryv1alpha1.CheckResult
	// message is the whole message, or what it begins with where it ends with …;
	// {ns}, {run} and {url} stand for those of the target. more are further parts.
	message string
	more    []string
	items   []registryv1alpha1.TargetCheckItem
	state   registryv1alpha1.TargetState
	// good is what the target is good for, where it's Ready all the same.
	good []registryv1alpha1.TargetCapability

	// mends does what the message says, or more; nil where there's nothing to do.
	mends func(b *brought, c registryv1alpha1.TargetCheck)
	// mended is what the check comes to; by default it passes.
	mended registryv1alpha1.CheckResult
}

// Each item of the probe fails on its own: with the message here, with those
// after it as far as they can be told, and with no canary left. Then its owner
// does what it says, and the target is Ready by a real pod.
func TestEachCheckFailsOnItsOwn(t *testing.T) {
	requireNode(t)
	var tests []beside
	for _, faults := range [][]fault{canaryFaults(t), credentialFaults(), namespaceFaults(), extraFaults()} {
		for _, f := range faults {
			tests = append(tests, beside{f.sentence, f.test})
		}
	}
	tests = append(tests, beside{"each verb", testEachVerb}, beside{"queue", testLocalQueue}, beside{"sandbox", testSandbox})
	sideBySide(t, 12, tests)
}

func (f fault) test(t *testing.T) {
	b := bring(t)
	if f.breaks == nil || !f.breaks(b) {
		b.keep(b.kubeconfig(b.token))
	}
	b.register(func(spec *registryv1alpha1.ClusterTargetSpec) {
		if f.spec != nil {
			f.spec(b, spec)
		}
	})
	if f.meanwhile != nil {
		f.meanwhile(b)
	}
	row := b.first()
	f.holds(b, row)
	b.noCanary()
	if f.mends == nil {
		return
	}
	f.mends(b, check(t, row, f.check))
	b.becomesReady(f.check, f.mended)
}

// holds sees that the probe found the fault, and nothing else.
func (f fault) holds(b *brought, row *registryv1alpha1.ClusterTarget) {
	b.t.Helper()
	inState(b.t, row, f.state)
	got := check(b.t, row, f.check)
	if got.Result != f.result {
		b.t.Errorf("%s is %s, want %s: %s", f.check, got.Result, f.result, got.Message)
	}
	replace := strings.NewReplacer("{ns}", b.name, "{run}", row.Status.Run.ID, "{url}", row.Spec.IngestURL)
	want := replace.Replace(f.message)
	if begins, part := strings.CutSuffix(want, "…"); part && strings.HasPrefix(got.Message, begins) {
		want = got.Message
	}
	if diff := cmp.Diff(want, got.Message); diff != "" {
		b.t.Errorf("the message (-want +got):\n%s", diff)
	}
	for _, part := range f.more {
		if !strings.Contains(got.Message, replace.Replace(part)) {
			b.t.Errorf("%q isn't in the message: %s", part, got.Message)
		}
	}
	if f.items != nil {
		if diff := cmp.Diff(f.items, got.Items); diff != "" {
			b.t.Errorf("the items (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(f.good, row.Status.Capabilities); diff != "" {
		b.t.Errorf("the capabilities (-want +got):\n%s", diff)
	}
	alone(b.t, row, f.check, f.result)
}

// alone sees that no other item failed or warned, and that the row names the one
// that did.
func alone(t *testing.T, row *registryv1alpha1.ClusterTarget, name registryv1alpha1.TargetCheckName, result registryv1alpha1.CheckResult) {
	t.Helper()
	for _, c := range row.Status.Checks {
		bad := c.Result == registryv1alpha1.CheckFailed || c.Result == registryv1alpha1.CheckWarning
		if bad && c.Name != name {
			t.Errorf("%s is %s too: %s", c.Name, c.Result, c.Message)
		}
	}
	failing := ""
	if result == registryv1alpha1.CheckFailed {
		failing = string(name) + ": "
	}
	if !strings.HasPrefix(row.Status.Failing, failing) || failing == "" && row.Status.Failing != "" {
		t.Errorf("the row says %q", row.Status.Failing)
	}
}

// becomesReady probes until the target is Ready and the check is as it should be:
// a right takes effect a moment after it was granted.
func (b *brought) becomesReady(name registryv1alpha1.TargetCheckName, want registryv1alpha1.CheckResult) (row *registryv1alpha1.ClusterTarget) {
	b.t.Helper()
	if want == "" {
		want = registryv1alpha1.CheckPassed
	}
	for range 3 {
		row = b.probed()
		if row.Status.State == registryv1alpha1.TargetReady && check(b.t, row, name).Result == want {
			b.noCanary(row.Spec.Namespace)
			return row
		}
	}
	b.t.Fatalf("mended, it's %s and %s is %s: %s %s", row.Status.State, name, check(b.t, row, name).Result, check(b.t, row, name).Message, row.Status.Failing)
	return nil
}

// closedPort is an address at which nothing listens.
func closedPort(t *testing.T, host string) string {
	t.Helper()
	listener := must(net.Listen("tcp", net.JoinHostPort(host, "0")))(t)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}

// testEachVerb takes each verb of the contract away on its own.
func testEachVerb(t *testing.T) {
	b := bring(t)
	b.keep(b.kubeconfig(b.token))
	var row *registryv1alpha1.ClusterTarget
	for _, right := range contract.Contract() {
		if right.Resource == "namespaces" { // its own item
			continue
		}
		for _, verb := range right.Verbs {
			b.denies(verb, right.Resource)
			if row == nil {
				b.register(nil)
				row = b.first()
			} else {
				row = b.probed()
			}
			missing := verb + " " + right.Resource
			inState(t, row, registryv1alpha1.TargetFailed)
			got := check(t, row, registryv1alpha1.CheckPermissions)
			want := fmt.Sprintf("In namespace %s the credential may not %s. On the target, apply the Role that the probe prints: it holds all that the hub needs.", b.name, missing)
			if got.Result != registryv1alpha1.CheckFailed || got.Message != want {
				t.Errorf("without %s it's %s: %s", missing, got.Result, got.Message)
			}
			for _, item := range got.Items {
				if (item.Result == registryv1alpha1.CheckPassed) != (item.Name != missing) {
					t.Errorf("without %s, %s is %s", missing, item.Name, item.Result)
				}
			}
			if canary := check(t, row, registryv1alpha1.CheckCanary); canary.Message != "Not started, because Permissions failed." {
				t.Errorf("without %s the canary is %s: %s", missing, canary.Result, canary.Message)
			}
			alone(t, row, registryv1alpha1.CheckPermissions, registryv1alpha1.CheckFailed)
		}
	}
	b.noCanary()
	applies(b, check(t, row, registryv1alpha1.CheckPermissions))
	b.becomesReady(registryv1alpha1.CheckPermissions, "")
}
