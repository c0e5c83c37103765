package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// enclave is where the processes of a node live: namespaces of their own for
// processes, mounts and network. The kernel ends all of it, pods, mounts, bridge
// and the link to this machine, with the first process in it, and that process
// ends as every process of the world does. So nothing that a node makes can
// outlive the world, however the world ends.
type enclave struct {
	// first is the first process: it waits.
	first *Process
	// address is this machine's on the link, and what the enclave routes to;
	// bridge is the bridge's own, on which pods hang.
	address, bridge netip.Addr
	// subnet is the pods' and both of these.
	subnet netip.Prefix
}

// newEnclave makes an enclave and starts it.
func newEnclave(ctx context.Context, w *World, name string) (*enclave, error) {
	e := &enclave{first: w.table.add(command{
		name: name,
		path: w.assets.pause(),
		start: func(cmd *exec.Cmd) error {
			cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET
			return cmd.Start()
		},
	})}
	if err := e.first.Start(ctx); err != nil {
		return nil, err
	}
	if err := e.connect(ctx); err != nil {
		return nil, fmt.Errorf("connecting %s to this machine: %w", name, err)
	}
	if err := e.visit(ctx, furnish); err != nil {
		return nil, fmt.Errorf("furnishing %s: %w", name, err)
	}
	if err := makeCgroups(e.id()); err != nil {
		return nil, fmt.Errorf("making the control groups of %s: %w", name, err)
	}
	return e, nil
}

// enclavePrefix is what the names of everything begin with that an enclave has outside
// of itself, and that the id of its first process ends. With 7 digits of it the
// name of a link is as long as the kernel allows.
const enclavePrefix = "cellcast"

// id names the enclave outside of itself.
func (e *enclave) id() string { return fmt.Sprintf("%s%d", enclavePrefix, e.first.PID()) }

// inside starts a command in the enclave; beside starts it there too, but on the
// network of this machine.
func (e *enclave) inside(cmd *exec.Cmd) error { return e.begin(cmd, "net", "pid", "mnt") }
func (e *enclave) beside(cmd *exec.Cmd) error { return e.begin(cmd, "pid", "mnt") }

func (e *enclave) begin(cmd *exec.Cmd, kinds ...string) error {
	// It dies with the first process, which dies with us. A child that looks for
	// us from in there finds no parent and would take us for dead.
	cmd.SysProcAttr.Pdeathsig = 0
	return e.enter(cmd.Start, kinds...)
}

// visit calls f in the enclave.
func (e *enclave) visit(ctx context.Context, f func(context.Context) error) error {
	done := make(chan error)
	go func() {
		// Never unlocked: the thread's working directory isn't the process's any
		// more, so it must end with the goroutine.
		runtime.LockOSThread()
		done <- e.enter(func() error { return f(ctx) }, "net", "pid", "mnt")
	}()
	return <-done
}

// run runs a program in the enclave. What it says is in the error.
func (e *enclave) run(ctx context.Context, stdin io.Reader, path string, args ...string) error {
	return e.visit(ctx, func(ctx context.Context) error { return execute(ctx, stdin, path, args...) })
}

func execute(ctx context.Context, stdin io.Reader, path string, args ...string) error {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(path), strings.Join(args, " "), err, out)
	}
	return nil
}

// enter calls f on this thread in the namespaces of the enclave, and takes the
// thread back. The thread must be locked, and may never be unlocked.
func (e *enclave) enter(f func() error, kinds ...string) (err error) {
	// Threads that share a working directory can't change their mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("parting from the other threads: %w", err)
	}
	var there, back []*os.File
	defer func() {
		for _, file := range append(there, back...) {
			_ = file.Close()
		}
	}()
	for _, kind := range kinds {
		// All before the first step: mnt has another /proc.
		to, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", e.first.PID(), kind))
		if err != nil {
			return fmt.Errorf("finding the enclave: %w", err)
		}
		there = append(there, to)
		from, err := os.Open("/proc/thread-self/ns/" + strings.Replace(kind, "pid", "pid_for_children", 1))
		if err != nil {
			return fmt.Errorf("finding the way back from the enclave: %w", err)
		}
		back = append(back, from)
	}
	if err := change(there); err != nil {
		return errors.Join(fmt.Errorf("entering the enclave: %w", err), change(back))
	}
	err = f()
	return errors.Join(err, change(back))
}

// change moves this thread into the namespaces.
func change(namespaces []*os.File) error {
	for _, ns := range namespaces {
		if err := unix.Setns(int(ns.Fd()), 0); err != nil {
			return fmt.Errorf("changing to %s: %w", ns.Name(), err)
		}
	}
	return nil
}

// furnish gives the enclave, which sees this machine's files, the folders that a
// node would write to for its own, in memory.
func furnish(ctx context.Context) error {
	mounts := []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		// No mount goes out of the enclave, and each into all pods.
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"", "/", "", unix.MS_REC | unix.MS_SHARED, ""},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=0755"},
	}
	for _, m := range mounts {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	// By a process of the enclave, for it shows those that its mounter sees.
	if err := execute(ctx, nil, "mount", "-t", "proc", "-o", "nosuid,nodev,noexec", "proc", "/proc"); err != nil {
		return err
	}
	// Paths in these can't be told to the CNI library and to the kubelet.
	for _, dir := range []string{"/var/lib", "/var/log"} {
		if err := cover(dir); err != nil {
			return err
		}
	}
	return pretend()
}

// cover lets writes to a folder go to memory.
func cover(dir string) error {
	own := filepath.Join("/run/covers", dir)
	upper, work := filepath.Join(own, "upper"), filepath.Join(own, "work")
	for _, path := range []string{upper, work} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("covering %s: %w", dir, err)
		}
	}
	data := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work)
	if err := unix.Mount("overlay", dir, "overlay", 0, data); err != nil {
		return fmt.Errorf("covering %s: %w", dir, err)
	}
	return nil
}

// pretend shows the kubelet the kernel's settings as it wants them, or else it
// would change this machine's.
func pretend() error {
	wanted := map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0",
		"kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	}
	for name, value := range wanted {
		path, err := writeFile("/run/sysctl", strings.ReplaceAll(name, "/", "."), []byte(value+"\n"))
		if err != nil {
			return fmt.Errorf("writing what %s seems to be: %w", name, err)
		}
		err = unix.Mount(path, "/proc/sys/"+name, "", unix.MS_BIND, "")
		if err != nil && !errors.Is(err, syscall.ENOENT) { // a kernel without it
			return fmt.Errorf("covering %s: %w", name, err)
		}
	}
	return nil
}
