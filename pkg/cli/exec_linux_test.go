package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A terminal sends ^C to all that is in its foreground: to a command that
// counts, it's one.
func TestExecDoesNotRepeatWhatATerminalSends(t *testing.T) {
	keyboard, terminal := openTerminal(t)
	j := newJob(t)
	ready := filepath.Join(j.dir, "ready")
	cmd, out, _ := j.command("exec", "--workload", "payments/api", "--", "sh", "-c",
		// The TERM that follows is behind a second INT, were there one.
		`trap 'echo INT >> said' INT; trap 'kill $!; exit 0' TERM; sleep 20 & echo > "`+ready+`"; while :; do wait; done`)
	cmd.Stdin = terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exists := func(path string) func() bool {
		return func() bool { _, err := os.Stat(path); return err == nil }
	}
	eventually(t, exists(ready))
	if _, err := keyboard.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	said := filepath.Join(j.dir, "said")
	eventually(t, exists(said))
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if got, _ := os.ReadFile(said); strings.Count(string(got), "INT") != 1 {
		t.Errorf("the command got %q", got)
	}
	j.clean(credentialhubRevoked)
}

// openTerminal returns both ends of a terminal that is nobody's yet.
func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be opened here: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}
