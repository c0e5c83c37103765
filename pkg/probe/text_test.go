package probe

import (
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe/contract"
)

func TestQuote(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"leaves plain text":                   {"no space left on device", "no space left on device"},
		"makes one line of several":           {" a\n\tb\r\nc ", "a b c"},
		"drops what a terminal acts on":       {"\x1b]0;title\x07x\u009bJ", "]0;title x J"},
		"drops what turns the writing around": {"a\u202eb\u2066c", "a b c"},
		"drops what is no text":               {"a\xffb", "ab"},
		"drops tokens":                        {"token=eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln, eyJhbGciOiJSUzI1NiJ9", "token=[token], [token]"},
		"cuts":                                {strings.Repeat("ä", 1000), strings.Repeat("ä", 126) + "…"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := quote(tc.text); got != tc.want || len(got) > maxQuote || !utf8.ValidString(got) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A row with more in it than its type takes can't be written at all.
func TestCheckFitsInARow(t *testing.T) {
	f := failed("%s", strings.Repeat("ä", 3000)).mendedBy(strings.Repeat("x", 9000))
	for range 100 {
		f.items = append(f.items, registryv1alpha1.TargetCheckItem{Name: strings.Repeat("n", 1000), Result: registryv1alpha1.CheckWarning})
	}
	c := f.check(registryv1alpha1.CheckExcess)
	if len(c.Message) > 2048 || !strings.HasSuffix(c.Message, "…") || c.Remedy != "" || len(c.Items) != 64 || len(c.Items[0].Name) > 512 {
		t.Errorf("message of %d bytes, remedy of %d, %d items", len(c.Message), len(c.Remedy), len(c.Items))
	}
	if last := c.Items[63]; last.Name != "and 37 more" || last.Result != registryv1alpha1.CheckWarning {
		t.Errorf("the last item is %+v", last)
	}
	if c := (finding{}).check(registryv1alpha1.CheckCanary); c.Result != registryv1alpha1.CheckFailed {
		t.Errorf("an item that says nothing is %s", c.Result)
	}
}

// Half a command is worse than none, so that of the longest names that a row takes
// has to fit in it.
func TestTheLongestRemediesFitInARow(t *testing.T) {
	long := func(n int) string { return strings.Repeat("n", n) }
	tr := newTrial(t)
	tr.spec.Namespace, tr.spec.Name, tr.spec.Target.Namespace = long(63), long(63), long(63)
	tr.spec.Target.ServiceAccountName, tr.spec.Target.Queue = long(253), long(63)
	p := &probe{spec: tr.spec}
	p.user.Username = "system:serviceaccount:" + long(63) + ":" + long(253)
	var pulls []string
	for range 16 {
		pulls = append(pulls, long(253))
	}
	p.spec.Target.CredentialRef = registryv1alpha1.TargetCredentialRef{SecretRef: &registryv1alpha1.TargetSecretRef{Name: long(253)}}
	remedies := []string{p.handIn(), p.createPullSecrets(pulls), p.grant(contract.Needed), p.grant(contract.Tokens),
		p.grant(contract.LocalQueue), p.grant(contract.Sandboxes), p.grantDiscovery(), p.edit(), p.events()}
	p.spec.Target.CredentialRef = registryv1alpha1.TargetCredentialRef{VaultRef: &registryv1alpha1.TargetVaultRef{Path: long(511) + "~"}}
	for i, remedy := range append(remedies, p.renew()) {
		if remedy == "" || len(remedy) > maxRemedy {
			t.Errorf("remedy %d has %d bytes: %.80s", i, len(remedy), remedy)
		}
	}
}

// A remedy is pasted into a shell: it does what it says for every name that it's
// made of.
func TestRemediesAreSafeInAShell(t *testing.T) {
	names := []string{"plain", "a b", "it's", "$(touch x)", "`touch x`", "a\nb", "", "*", `\`, "EOF"}
	for _, name := range names {
		// sh prints the word as it was given, a newline after it.
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+command(name)).Output()
		if err != nil || string(out) != name+"\n" {
			t.Errorf("%q became %q, %v", name, out, err)
		}
	}
	p := &probe{spec: newTrial(t).spec}
	for _, user := range []string{account, "O'Brien $(touch x)", "EOF", "'", "EOF\nrm -rf x"} {
		p.user.Username = user
		remedy := p.grant(contract.Needed)
		if strings.Contains(user, "\n") {
			if remedy != "" || p.grantDiscovery() != "" {
				t.Errorf("%q: there is a remedy:\n%s", user, remedy)
			}
			continue
		}
		manifest, ok := strings.CutPrefix(remedy, "kubectl --kubeconfig kubeconfig apply --server-side --force-conflicts -f - <<'EOF'\n")
		manifest, whole := strings.CutSuffix(manifest, "EOF")
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "kubectl() { cat; }\n"+remedy).Output()
		if err != nil || !ok || !whole || string(out) != manifest {
			t.Errorf("%q: the shell hands over\n%s\n%v", user, out, err)
		}
	}
}
