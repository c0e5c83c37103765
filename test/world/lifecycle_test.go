package world_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/test/world"
	"cellcast.io/cellcast/test/world/worldtest"
)

// The environment variables that turn this test binary into a program that
// starts a world, for the tests of what becomes of a world then.
const (
	starterDir    = "CELLCAST_TEST_STARTER_DIR"
	starterDetach = "CELLCAST_TEST_STARTER_DETACH"
	starterNode   = "CELLCAST_TEST_STARTER_NODE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(starterDir); dir != "" {
		os.Exit(starter(dir, os.Getenv(starterDetach) != "", os.Getenv(starterNode) != ""))
	}
	os.Exit(m.Run())
}

// starter starts a hub, with a node a cell that has one too, and says so. A
// detached one it leaves; else it waits for Ctrl-C.
func starter(dir string, detach, node bool) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	options := world.Options{Dir: dir, Detach: detach}
	if node {
		options.Cells = []world.CellOptions{{Name: "a", Node: true}}
	}
	w, err := world.Start(ctx, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("started")
	if detach {
		return 0
	}
	<-ctx.Done()
	if err := w.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	worldtest.Require(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error)
	go func() {
		_, err := world.Start(ctx, world.Options{Dir: dir, Cells: []world.CellOptions{{Name: "a"}}})
		failed <- err
	}()

	pids := untilRecorded(t, dir, 2) // etcd, and the first API server
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	untilGone(t, pids)
	if left := recorded(t, dir); len(left) > 0 {
		t.Errorf("the record still has %v", left)
	}
}

func TestStartThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	worldtest.Require(t)
	broken := t.TempDir()
	script := "#!/bin/sh\necho the disk is made of cheese\nexit 3\n"
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.WriteFile(filepath.Join(broken, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBEBUILDER_ASSETS", broken)
	dir := t.TempDir()
	_, err := world.Start(t.Context(), world.Options{Dir: dir})
	want := fmt.Sprintf(`starting the world in %s: waiting for etcd: it ended: exit status 3
the end of %s:
the disk is made of cheese
`, dir, filepath.Join(dir, "logs", "etcd.log"))
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if left := recorded(t, dir); len(left) > 0 {
		t.Errorf("the record still has %v", left)
	}
}

func TestCtrlCLeavesNothing(t *testing.T) {
	worldtest.Require(t)
	dir := t.TempDir()
	program := start(t, dir, "")
	pids := untilRecorded(t, dir, 2)
	if err := program.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	untilGone(t, pids)
}

func TestWorldDiesWithItsStarter(t *testing.T) {
	worldtest.Require(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	dir := t.TempDir()
	program := start(t, dir, "")
	pids := untilRecorded(t, dir, 2)
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	untilGone(t, pids)
}

func TestDetachedWorldStaysUntilStopDetached(t *testing.T) {
	worldtest.Require(t)
	dir := t.TempDir()
	program := start(t, dir, "yes")
	t.Cleanup(func() { _, _ = world.StopDetached(context.Background(), dir) })
	if err := program.Wait(); err != nil {
		t.Fatal(err)
	}
	pids := untilRecorded(t, dir, 2)
	for _, pid := range pids {
		if !alive(pid) {
			t.Errorf("process %d didn't outlive its starter", pid)
		}
	}
	if _, err := world.Start(t.Context(), world.Options{Dir: dir}); err == nil {
		t.Error("a second world could be started in the same folder")
	}

	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer stranger.Process.Kill()
	addRecord(t, dir, stranger.Process.Pid)

	ended, err := world.StopDetached(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hub-kube-apiserver", "etcd"}, ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	untilGone(t, pids)
	if !alive(stranger.Process.Pid) {
		t.Error("a process that only has the id of a recorded one was ended")
	}
	if again, err := world.StopDetached(t.Context(), dir); len(again) > 0 || err != nil {
		t.Errorf("a second StopDetached ended %v and says %v", again, err)
	}
}

// start runs the starter. With detach, it returns once the world is up.
func start(t *testing.T, dir, detach string) *exec.Cmd {
	t.Helper()
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), starterDir+"="+dir, starterDetach+"="+detach)
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Process.Kill() })
	if detach != "" {
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
			t.Fatalf("the starter said %q, %v", line, err)
		}
	}
	return program
}

// addRecord puts a process into the record that the world didn't start, as if
// the system had given it the id of one that it did.
func addRecord(t *testing.T, dir string, pid int) {
	t.Helper()
	records := recorded(t, dir)
	other := map[string]any{"name": "cellcast-hub", "pid": pid, "started": records[0]["started"], "graceful": true}
	content, err := json.Marshal(append(records, other))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "processes.json"), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// recorded returns the record of the world in dir.
func recorded(t *testing.T, dir string) []map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "processes.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var records []map[string]any
	if err := json.Unmarshal(content, &records); err != nil {
		t.Fatal(err)
	}
	return records
}

// untilRecorded waits until so many processes run and returns their ids.
func untilRecorded(t *testing.T, dir string, count int) []int {
	t.Helper()
	var pids []int
	poll(t, fmt.Sprintf("%d processes run", count), func() bool {
		pids = nil
		for _, r := range recorded(t, dir) {
			pids = append(pids, int(r["pid"].(float64)))
		}
		return len(pids) >= count
	})
	return pids
}

func untilGone(t *testing.T, pids []int) {
	t.Helper()
	poll(t, fmt.Sprintf("processes %v are gone", pids), func() bool {
		return !slices.ContainsFunc(pids, alive)
	})
}

// alive says whether there is a process of that id, a zombie among them.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	const patience = 3 * time.Minute // the start of a world with a node is waited for too
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("after %s it isn't so that %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
