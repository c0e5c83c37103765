package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"cellcast.io/cellcast/pkg/cli/terminal"
)

// The exit codes that a shell has for a command that it can't run, and the sum
// for one that a signal ended.
const (
	exitNotStarted = 126
	exitNotFound   = 127
	exitSignal     = 128
)

// exitStatus ends the client with this code: all that there is to say has been
// said.
type exitStatus struct{ code int }

func (e *exitStatus) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// child is the command of an exec.
type child struct {
	env     Env
	cmd     *exec.Cmd
	signals chan os.Signal
	// stopped ends when a signal comes before the command runs.
	stopped context.Context
}

// newChild finds the command.
func (e Env) newChild(ctx context.Context, command []string) (*child, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, e.notFound(command[0], err)
	}
	// The command ends by the signals that it's sent, and not with the context.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path)
	cmd.Args = command
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, e.Out, e.Err
	return &child{env: e, cmd: cmd, stopped: ctx}, nil
}

// notFound tells a command that isn't there from one that may not be run.
func (e Env) notFound(name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		e.say("Error: %s: there is no such command", terminal.Printable(name))
		return &exitStatus{exitNotFound}
	}
	return e.notStarted(name, err)
}

// notStarted says why the command can't be started, and ends as a shell does
// then.
func (e Env) notStarted(name string, err error) error {
	var path *fs.PathError
	var command *exec.Error
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &command):
		err = command.Err
	}
	e.say("Error: %s can't be started: %v", terminal.Printable(name), err)
	return &exitStatus{exitNotStarted}
}

// listen takes the signals from now on; what it returns stops that.
func (c *child) listen() (stop func()) {
	c.signals = make(chan os.Signal, 16)
	var taken []os.Signal
	for _, s := range handedOn() {
		if !signal.Ignored(s) { // as nohup does, for the command too
			taken = append(taken, s)
		}
	}
	if len(taken) == 0 { // which would mean all of them
		return func() {}
	}
	signal.Notify(c.signals, taken...)
	var release context.CancelFunc
	c.stopped, release = signal.NotifyContext(c.stopped, taken...)
	return func() {
		release()
		signal.Stop(c.signals)
	}
}

// run runs the command with these variables and returns how it ended.
func (c *child) run(env ...string) error {
	select {
	case s := <-c.signals:
		return ended(signalled(s))
	default:
	}
	c.cmd.Env = append(os.Environ(), env...)
	if err := c.cmd.Start(); err != nil {
		return c.env.notStarted(c.cmd.Args[0], err)
	}
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	for {
		select {
		case s := <-c.signals:
			if !sentByTerminal(s) {
				_ = c.cmd.Process.Signal(s) // it may have ended in this moment
			}
		case err := <-done:
			return c.ended(err)
		}
	}
}

// ended is how the command ended, as a shell has it.
func (c *child) ended(err error) error {
	state := c.cmd.ProcessState
	if state == nil {
		return fmt.Errorf("wait for %s: %w", c.cmd.Args[0], err)
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return ended(signalled(status.Signal()))
	}
	return ended(state.ExitCode())
}

func ended(code int) error {
	if code == exitDone {
		return nil
	}
	return &exitStatus{code}
}

// signalled is the exit code that a shell has for a signal.
func signalled(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return exitSignal + int(number)
	}
	return exitOther
}
