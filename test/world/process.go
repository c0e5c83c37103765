package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// readyWithin bounds how long a process may take to become ready.
	readyWithin = 3 * time.Minute
	// readyEvery is the pause between two questions whether it is.
	readyEvery = 50 * time.Millisecond
	// answerWithin bounds one such question, for a process may accept a
	// connection and never answer.
	answerWithin = 5 * time.Second
	// stopWithin is how long a process may take to end by itself.
	stopWithin = 10 * time.Second
	// killedWithin is how long the kernel may take to clear away a process that was
	// killed, and a control group after its last one.
	killedWithin = time.Minute
)

// command is what a process runs.
type command struct {
	name string
	path string
	args []string
	// stdout takes its standard output; nil means the log.
	stdout *os.File
	// graceful processes get time to end by themselves when the world stops.
	// The others hold state that nobody reads again.
	graceful bool
	// ready returns nil once the process serves; unset, it is ready at once.
	ready func(context.Context) error
	// start begins it on a thread that lives as long as the process; unset, as
	// any other.
	start func(*exec.Cmd) error
}

// Process is a process of the world, running or not. Tests stop and start it
// to see what others do meanwhile; its ports stay reserved.
type Process struct {
	command
	table *table

	mu  sync.Mutex
	run *run // the last one; nil before the first
}

// run is one life of a process.
type run struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // how it ended, once it has
}

// Name is the process's name, and that of its log file.
func (p *Process) Name() string { return p.name }

// LogFile is the path of its log, which restarts append to.
func (p *Process) LogFile() string { return logFile(p.table.dir, p.name) }

// PID is the process id, or 0 while it doesn't run.
func (p *Process) PID() int {
	if r := p.running(); r != nil {
		return r.cmd.Process.Pid
	}
	return 0
}

// Start starts the process and waits until it is ready, at most three minutes. A
// start that fails leaves no process. Starting a running process is an error.
func (p *Process) Start(ctx context.Context) error {
	r, err := p.table.launch(p)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	if err := p.await(ctx, r); err != nil {
		return errors.Join(fmt.Errorf("waiting for %s: %w%s", p.name, err, tail(p.LogFile())), p.Kill())
	}
	return nil
}

// Stop asks the process to end and kills it if it hasn't within ten seconds.
// Stopping a process that doesn't run does nothing.
func (p *Process) Stop() error { return p.end(syscall.SIGTERM) }

// Kill ends the process at once, as a crash would.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL) }

// Restart ends the process as the world's end does and starts it again. An API
// server is killed: while somebody watches, an orderly end takes it longer than
// ten seconds and changes nothing.
func (p *Process) Restart(ctx context.Context) error {
	end := p.Kill
	if p.graceful {
		end = p.Stop
	}
	return errors.Join(end(), p.Start(ctx))
}

// launch begins a new life. The table calls it, under its lock.
func (p *Process) launch(detach bool) (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && p.run.alive() {
		return nil, errors.New("it is already running")
	}
	log, err := os.OpenFile(p.LogFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.Command(p.path, p.args...)
	cmd.Dir = p.table.dir
	cmd.Stdout, cmd.Stderr = log, log // a file, not a pipe: it serves a child that outlives us
	if p.stdout != nil {
		cmd.Stdout = p.stdout
	}
	cmd.SysProcAttr = attributes(detach)

	start := p.start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	r := &run{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux ends the child with the thread that started it, so this thread
		// lives as long as the child. It ends with this goroutine, never unlocked,
		// because start may have changed it.
		runtime.LockOSThread()
		err := start(cmd)
		started <- err
		if err == nil {
			r.err = cmd.Wait()
			close(r.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.run = r
	return r, nil
}

// await returns when the process is ready, has ended, or ctx has.
func (p *Process) await(ctx context.Context, r *run) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := p.isReady(ctx)
		if err == nil && r.alive() {
			return nil
		}
		select {
		case <-r.ended:
			return fmt.Errorf("it ended: %w", endOf(r))
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(readyEvery):
		}
	}
}

func (p *Process) isReady(ctx context.Context) error {
	if p.ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return p.ready(ctx)
}

// end signals the process, waits, and kills it when waiting was in vain.
func (p *Process) end(signal syscall.Signal) error {
	r := p.running()
	if r == nil {
		return nil
	}
	for _, s := range []syscall.Signal{signal, syscall.SIGKILL} {
		if err := r.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("ending %s: %w", p.name, err)
		}
		select {
		case <-r.ended:
			return nil
		case <-time.After(endsWithin(s)):
		}
	}
	return fmt.Errorf("ending %s: process %d is still there", p.name, r.cmd.Process.Pid)
}

// endsWithin is how long a process may take to end after the signal.
func endsWithin(s syscall.Signal) time.Duration {
	if s == syscall.SIGKILL {
		return killedWithin
	}
	return stopWithin
}

func (p *Process) running() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || !p.run.alive() {
		return nil
	}
	return p.run
}

func (r *run) alive() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

func endOf(r *run) error {
	if r.err != nil {
		return r.err
	}
	return errors.New("exit status 0")
}
