//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

const (
	// running is what exec says before the command, and what then follows where
	// the credential can't be handed back.
	running    = "payments/api goes to cell eu-1 with a credential for payments/deployer: it ends with the command, or by the cell's agent at 2026-01-02T03:09:05Z.\n"
	notRevoked = "Warning: the credential wasn't revoked; the cell's agent ends it at 2026-01-02T03:09:05Z: "
)

func TestExecRunsACommandWithACredentialThatEndsWithIt(t *testing.T) {
	j := newJob(t)
	got := j.run("exec", "--workload", "payments/api", "--", "sh", "-c",
		`cat >&2; echo "$CELLCAST_CELL in $(dirname "$(dirname "$KUBECONFIG")")"
		stat -c %a "$KUBECONFIG" "$(dirname "$KUBECONFIG")"; grep -E 'server|token|Nonce' "$KUBECONFIG"`)
	want := answerOf{0, "eu-1 in " + j.temp + "\n600\n700\n" +
		"    server: https://eu-1.example.com\n        revocationNonce: nonce-of-twenty-two-chars\n    token: minted.SECRET.1\n", running}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	j.clean(credentialhubRevoked)
}

func TestExecPassesTheStandardInputThrough(t *testing.T) {
	j := newJob(t)
	cmd, out, _ := j.command("exec", "--workload", "payments/api", "--", "cat")
	cmd.Stdin = strings.NewReader("manifest\n")
	if err := cmd.Run(); err != nil || out.String() != "manifest\n" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestExecEndsAsItsCommandDoes(t *testing.T) {
	j := newJob(t)
	notExecutable := j.file("not-executable", "")
	for name, test := range map[string]struct {
		command []string
		code    int
		err     string
		minted  int
	}{
		"with its exit code":                   {[]string{"sh", "-c", "exit 7"}, 7, running, 1},
		"with 128 and the signal that ends it": {[]string{"sh", "-c", "kill -KILL $$"}, 137, running, 1},
		"with 127 where there is none":         {[]string{"no-such-command"}, 127, "Error: no-such-command: there is no such command\n", 0},
		"with 127 where there is no such file": {[]string{"./no-such-file"}, 127, "Error: ./no-such-file: there is no such command\n", 0},
		"with 126 where it's not executable":   {[]string{notExecutable}, 126, "Error: " + notExecutable + " can't be started: permission denied\n", 0},
		"with its arguments as they are":       {[]string{"sh", "-c", `[ "$#$1$2" = "2-- a" ]`, "sh", "--", " a"}, 0, running, 1},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			got := j.run(append([]string{"exec", "--workload", "payments/api", "--"}, test.command...)...)
			if diff := cmp.Diff(answerOf{test.code, "", test.err}, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if minted, _ := j.hub.counts(); minted != test.minted {
				t.Errorf("minted %d times, want %d", minted, test.minted)
			}
			j.clean(credentialhubRevoked[:test.minted])
		})
	}
}

// Found on the PATH, and no program after all: seen only when there is a
// credential, which is handed back.
func TestExecHandsBackWhereTheCommandDoesNotStart(t *testing.T) {
	j := newJob(t)
	script := j.file("script", "#!/no/such/interpreter\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	got := j.run("exec", "--workload", "payments/api", "--", script)
	if got.code != 126 || !strings.HasPrefix(got.err, running+"Error: "+script+" can't be started: ") {
		t.Errorf("got %+v", got)
	}
	j.clean(credentialhubRevoked)
}

func TestExecRunsNothingWithoutACredential(t *testing.T) {
	for name, test := range map[string]struct {
		code refusal.Code
		exit int
	}{
		"when it's refused":               {refusal.NoPolicy, 3},
		"when there is no decision now":   {refusal.NoEligibleCells, 4},
		"when there is no credential now": {refusal.MintFailed, 5},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.hub.with(func(h *credentialhub) { h.refuses["placements"] = test.code })
			got := j.run("exec", "--workload", "payments/api", "--timeout", "4s", "--", "echo", "it ran")
			if got.code != test.exit || got.out != "" || !strings.Contains(got.err, "Error: "+string(test.code)+": the fake says so\n") {
				t.Errorf("got %+v", got)
			}
			j.clean(nil)
		})
	}
}

func TestExecRefusesAWrongUse(t *testing.T) {
	const command = "Error: which command? Put it after --, such as: --workload payments/api -- kubectl apply -f deploy.yaml\nSee cellcast exec --help\n"
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"without a command":              {[]string{"--workload", "payments/api"}, command},
		"with no command after --":       {[]string{"--workload", "payments/api", "--"}, command},
		"with a command without --":      {[]string{"--workload", "payments/api", "kubectl"}, command},
		"with an argument before --":     {[]string{"payments/api", "--", "kubectl"}, command},
		"without a workload":             {[]string{"--", "kubectl"}, "Error: which workload? Name it with --workload, such as payments/api\nSee cellcast exec --help\n"},
		"with a life below zero":         {[]string{"--workload", "x", "--ttl", "-5m", "--", "true"}, "Error: --ttl must be above zero\nSee cellcast exec --help\n"},
		"with no time for the hub":       {[]string{"--workload", "x", "--timeout", "0s", "--", "true"}, "Error: --timeout must be above zero\nSee cellcast exec --help\n"},
		"with a quantity that isn't one": {[]string{"--workload", "x", "--requests", "cpu=lots", "--", "true"}, "Error: --requests cpu=lots is no quantity, such as 500m or 4Gi\nSee cellcast exec --help\n"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			got := j.run(append([]string{"exec"}, test.args...)...)
			if diff := cmp.Diff(answerOf{2, "", test.err}, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			j.clean(nil)
		})
	}
}

func TestExecHandsSignalsOn(t *testing.T) {
	for name, test := range map[string]struct {
		signal syscall.Signal
		script string
		code   int
		out    string
	}{
		"TERM to a command that heeds it":   {syscall.SIGTERM, `trap 'kill $!; echo heard; exit 9' TERM`, 9, "heard\n"},
		"INT to a command that heeds it":    {syscall.SIGINT, `trap 'kill $!; echo heard; exit 9' INT`, 9, "heard\n"},
		"HUP to a command that heeds it":    {syscall.SIGHUP, `trap 'kill $!; echo heard; exit 9' HUP`, 9, "heard\n"},
		"QUIT to a command that heeds it":   {syscall.SIGQUIT, `trap 'kill $!; echo heard; exit 9' QUIT`, 9, "heard\n"},
		"USR1 to a command that heeds it":   {syscall.SIGUSR1, `trap 'kill $!; echo heard; exit 9' USR1`, 9, "heard\n"},
		"USR2 to a command that heeds it":   {syscall.SIGUSR2, `trap 'kill $!; echo heard; exit 9' USR2`, 9, "heard\n"},
		"TERM to a command that dies of it": {syscall.SIGTERM, `exec 1>&- 2>&-`, 143, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			ready := filepath.Join(j.dir, "ready")
			cmd, out, _ := j.command("exec", "--workload", "payments/api", "--", "sh", "-c",
				test.script+`; sleep 20 & echo > "`+ready+`"; wait; exit 1`)
			// A process group of its own, as a job has: no terminal sends it anything.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() bool { _, err := os.Stat(ready); return err == nil })
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the sleep that may be left
			if cmd.ProcessState.ExitCode() != test.code || out.String() != test.out {
				t.Errorf("exit %d, %q; want %d, %q", cmd.ProcessState.ExitCode(), out, test.code, test.out)
			}
			j.clean(credentialhubRevoked)
		})
	}
}

func TestASignalBeforeTheCommandRunsStartsNone(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			asked, hold := make(chan struct{}, 10), make(chan struct{})
			t.Cleanup(func() { close(hold) })
			j.hub.with(func(h *credentialhub) { h.asked = func(string) { asked <- struct{}{}; <-hold } })
			cmd, out, stderr := j.command("exec", "--workload", "payments/api", "--", "echo", "it ran")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-asked
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if cmd.ProcessState.ExitCode() != 1 || out.String() != "" || !strings.HasPrefix(stderr.String(), "Error: interrupted\n") {
				t.Errorf("exit %d, %q, %q", cmd.ProcessState.ExitCode(), out, stderr)
			}
			j.clean(nil)
		})
	}
}

func TestExecSaysWhenTheCredentialIsNotRevoked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*credentialhub)
		err    string
	}{
		"as the hub refuses": {func(h *credentialhub) { h.refuses["cells/eu-1/revocation"] = refusal.NoPolicy },
			running + notRevoked + "NoPolicy: the fake says so\nRequest id: " + requestID + "\n"},
		"as it can't be": {func(h *credentialhub) { h.revocable = 0 },
			"payments/api goes to cell eu-1 with a credential for payments/deployer: it can't be revoked, and ends at 2026-01-02T03:14:05Z.\n"},
		"as the hub finds none of this caller's": {func(h *credentialhub) { h.alive = false }, running + notRevoked +
			"the hub found no such credential of yours: it has ended already, or you aren't the caller any more whom it was issued to\n"},
		"as the hub says nothing of it": {func(h *credentialhub) { h.mute = true }, running + notRevoked + "the hub answered without a result; is it a hub?\n"},
		"unless it has ended by itself": {func(h *credentialhub) {
			h.alive = false
			h.way = func(c *cellcastv1alpha1.Credential) { c.RevokesAt = &metav1.Time{Time: now} }
		},
			strings.Replace(running, "03:09:05", "03:04:05", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.hub.with(test.change)
			got := j.run("exec", "--workload", "payments/api", "--", "sh", "-c", "exit 6")
			if diff := cmp.Diff(answerOf{6, "", test.err}, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecFindsAPrivateDirectory(t *testing.T) {
	for name, test := range map[string]struct{ runner, xdg, want string }{
		"of the CI runner":                 {"runner", "xdg", "runner"},
		"of the session":                   {"", "xdg", "xdg"},
		"for temporary files":              {"", "", "tmp"},
		"passing over one that is missing": {"missing", "xdg", "xdg"},
		"passing over a relative path":     {"RELATIVE", "", "tmp"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			at := func(name string) string {
				if name == "" || name == "RELATIVE" {
					return name
				}
				return filepath.Join(j.dir, name)
			}
			for _, dir := range []string{"xdg", "tmp", "RELATIVE"} {
				if err := os.Mkdir(filepath.Join(j.dir, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			j.env = append(j.env, "RUNNER_TEMP="+at(test.runner), "XDG_RUNTIME_DIR="+at(test.xdg), "TMPDIR="+at("tmp"))
			got := j.run("exec", "--workload", "payments/api", "--", "sh", "-c", `echo "$KUBECONFIG"`)
			if !strings.HasPrefix(got.out, at(test.want)+"/cellcast-exec-") {
				t.Errorf("got %+v, want it under %s", got, at(test.want))
			}
		})
	}
}
