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
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
	"cellcast.io/cellcast/pkg/refusal"
)

const (
	revokedText  = "Revoked the credential for namespace payments of cell eu-1: the cell refuses it within 15 seconds.\n"
	notFoundText = "Not found: you have no such credential for namespace payments of cell eu-1 that is alive. It has ended already, was issued to another caller, or the hub may not end it any more.\n"
)

// revocableCredential is one that a credentialhub has issued; it ends by itself
// in so much time.
func revocableCredential(ends time.Duration) *cellcastv1alpha1.Credential {
	at := metav1.NewTime(now.Add(ends))
	return &cellcastv1alpha1.Credential{Token: "minted.SECRET.0", Namespace: "payments", ServiceAccountName: "deployer",
		ExpirationTimestamp: metav1.NewTime(now.Add(10 * time.Minute)), RevokesAt: &at, RevocationNonce: credentialhubNonce}
}

// cellKubeconfig writes the kubeconfig that holds a credential.
func (j *job) cellKubeconfig(c *cellcastv1alpha1.Credential) string {
	j.t.Helper()
	content, err := kubeconfigfile.Kubeconfig(j.hub.cell, *c)
	if err != nil {
		j.t.Fatal(err)
	}
	return j.file("cell.kubeconfig", "# Written by cellcast; as place does.\n"+string(content))
}

// answerFile writes what place -o json printed.
func (j *job) answerFile(kind string, c *cellcastv1alpha1.Credential) string {
	j.t.Helper()
	p := &cellcastv1alpha1.Placement{Spec: cellcastv1alpha1.PlacementSpec{Workload: "payments/api"},
		Status: cellcastv1alpha1.PlacementStatus{Cell: j.hub.cell, Credential: c}}
	p.SetGroupVersionKind(cellcastv1alpha1.SchemeGroupVersion.WithKind(kind))
	content, err := json.Marshal(p)
	if err != nil {
		j.t.Fatal(err)
	}
	return j.file("answer.json", string(content))
}

func TestRevokeEndsTheCredentialThatIsNamed(t *testing.T) {
	for name, args := range map[string]func(j *job) []string{
		"by an answer": func(j *job) []string {
			return []string{"-f", j.answerFile("Placement", revocableCredential(time.Minute))}
		},
		"by an answer for one cell": func(j *job) []string {
			return []string{"-f", j.answerFile("CellToken", revocableCredential(time.Minute))}
		},
		"by its parts": func(j *job) []string {
			return []string{"--cell", "eu-1", "--namespace", "payments", "--nonce-file", j.file("nonce", credentialhubNonce+"\n")}
		},
		"by a kubeconfig":                func(j *job) []string { return []string{j.cellKubeconfig(revocableCredential(time.Minute))} },
		"by a kubeconfig, when it's old": func(j *job) []string { return []string{j.cellKubeconfig(revocableCredential(-time.Minute))} },
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			args := args(j)
			got := j.run(append([]string{"revoke"}, args...)...)
			want := answerOf{0, revokedText, ""}
			if !strings.HasPrefix(args[0], "-") {
				want.err = "Removed " + args[0] + ".\n"
				if _, err := os.Stat(args[0]); !os.IsNotExist(err) {
					t.Errorf("the kubeconfig: %v", err)
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			j.clean(credentialhubRevoked)
		})
	}
}

func TestRevokeReadsTheStandardInput(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		input string
	}{
		"for an answer": {[]string{"-f", "-"}, "answer.json"},
		"for a nonce":   {[]string{"--cell", "eu-1", "--namespace", "payments", "--nonce-file", "-"}, "nonce"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.answerFile("Placement", revocableCredential(time.Minute))
			j.file("nonce", credentialhubNonce)
			input, err := os.Open(filepath.Join(j.dir, test.input))
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			cmd, out, stderr := j.command(append([]string{"revoke"}, test.args...)...)
			cmd.Stdin = input
			if err := cmd.Run(); err != nil || out.String() != revokedText {
				t.Errorf("got %v, %q, %q", err, out, stderr)
			}
		})
	}
}

// What is alive for another caller isn't found for this one.
func TestRevokeKeepsAFileWhoseCredentialMayBeAlive(t *testing.T) {
	for name, test := range map[string]struct {
		ends time.Duration
		err  string
		gone bool
	}{
		"before its end": {time.Minute, "Left FILE as it is: its credential may be alive.\n", false},
		"not after it":   {-time.Minute, "Removed FILE.\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.hub.with(func(h *credentialhub) { h.alive = false })
			path := j.cellKubeconfig(revocableCredential(test.ends))
			got := j.run("revoke", path)
			want := answerOf{0, notFoundText, strings.ReplaceAll(test.err, "FILE", path)}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := os.Stat(path); os.IsNotExist(err) != test.gone {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

func TestRevokeLeavesAFileThatSomebodyElseWrote(t *testing.T) {
	j := newJob(t)
	content, err := os.ReadFile(j.cellKubeconfig(revocableCredential(time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	path := j.file("merged", strings.TrimPrefix(string(content), "# Written by cellcast; as place does.\n"))
	got := j.run("revoke", path)
	want := answerOf{0, revokedText, "Warning: the credential has ended, and its file isn't removed: " + path +
		" exists and wasn't written by cellcast: it's left as it is; name another file\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestRevokeSaysWhyNot(t *testing.T) {
	for name, test := range map[string]struct {
		code refusal.Code
		exit int
	}{
		"when the cell can't be reached": {refusal.MintUnavailable, 4},
		"when the cell refuses":          {refusal.MintFailed, 4},
		"when the request is refused":    {refusal.InvalidRequest, 3},
		"when the hub has just started":  {refusal.PlacementUnavailable, 4},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.hub.with(func(h *credentialhub) { h.refuses["cells/eu-1/revocation"] = test.code })
			path := j.cellKubeconfig(revocableCredential(time.Minute))
			got := j.run("revoke", path, "--timeout", "4s")
			if got.code != test.exit || got.out != "" || !strings.Contains(got.err, "Error: "+string(test.code)+": the fake says so\n") ||
				!strings.Contains(got.err, "Request id: "+requestID+"\n") {
				t.Errorf("got %+v, want exit %d", got, test.exit)
			}
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRevokeAsksNothingWithoutACredential(t *testing.T) {
	const notRevocable = "holds no credential of cellcast's that can be revoked: a policy makes one so (spec.credential.revocable), and any other ends by itself\n"
	const oneWay = "Error: which credential? Name it in one way: the kubeconfig FILE, -f ANSWER, or --cell with --namespace and --nonce-file\nSee cellcast revoke --help\n"
	const noAnswer = "Error: that is no answer of the hub's: expected is what place -o json printed\n"
	plain := revocableCredential(time.Minute)
	plain.RevokesAt = nil
	parts := func(cell, namespace, nonce string) func(j *job) []string {
		return func(j *job) []string {
			return []string{"--cell", cell, "--namespace", namespace, "--nonce-file", j.file("nonce", nonce)}
		}
	}
	for name, test := range map[string]struct {
		args func(j *job) []string
		code int
		err  string
	}{
		"that is named":         {func(*job) []string { return nil }, 2, oneWay},
		"that is named once":    {func(*job) []string { return []string{"FILE", "-f", "FILE"} }, 2, oneWay},
		"that is named whole":   {func(*job) []string { return []string{"--cell", "eu-1"} }, 2, "Error: --cell, --namespace and --nonce-file go together\nSee cellcast revoke --help\n"},
		"of a cell's name":      {parts("../eu-1", "payments", credentialhubNonce), 2, "Error: the name of the cell is wrong\nSee cellcast revoke --help\n"},
		"of a namespace's name": {parts("eu-1", "Payments", credentialhubNonce), 2, "Error: the namespace of the credential is wrong\nSee cellcast revoke --help\n"},
		"of a nonce's form":     {parts("eu-1", "payments", "short"), 2, "Error: the revocation nonce must be 22 to 64 characters of A-Z, a-z, 0-9, '-' and '_', drawn at random\nSee cellcast revoke --help\n"},
		"in a nonce's size":     {parts("eu-1", "payments", strings.Repeat("x", 1025)), 1, "Error: DIR/nonce is longer than 1024 bytes: it's not what is expected there\n"},
		"in the kubeconfig":     {func(j *job) []string { return []string{j.cellKubeconfig(plain)} }, 1, "Error: DIR/cell.kubeconfig " + notRevocable},
		"in the answer":         {func(j *job) []string { return []string{"-f", j.answerFile("Placement", plain)} }, 1, "Error: that answer " + notRevocable},
		"in a dry run's answer": {func(j *job) []string { return []string{"-f", j.answerFile("Placement", nil)} }, 1, "Error: that answer " + notRevocable},
		"in another kind":       {func(j *job) []string { return []string{"-f", j.answerFile("Cell", plain)} }, 1, "Error: that is no Placement or CellToken that this version can read: expected is what place -o json printed\n"},
		"in another group's": {func(j *job) []string {
			return []string{"-f", j.file("x", `{"apiVersion":"acme.io/v1","kind":"Placement"}`)}
		}, 1, noAnswer},
		"in what is a token alone": {func(j *job) []string { return []string{"-f", j.file("x", "minted.SECRET.0")} }, 1, noAnswer},
		"in a field that isn't known": {func(j *job) []string {
			return []string{"-f", j.file("x", `{"apiVersion":"cellcast.io/v1alpha1","kind":"Placement","spec":{"workload":"x"},"tokn":"minted.SECRET.0"}`)}
		}, 1, "Error: that is no Placement or CellToken that this version can read: expected is what place -o json printed\n"},
		"in a file that isn't there": {func(*job) []string { return []string{"-f", "missing"} }, 1, "Error: open missing: no such file or directory\n"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			got := j.run(append([]string{"revoke"}, test.args(j)...)...)
			if diff := cmp.Diff(answerOf{test.code, "", strings.ReplaceAll(test.err, "DIR", j.dir)}, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			j.clean(nil)
		})
	}
}
