//go:build unix

package cli

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// handedOn are the signals that a command gets from whoever sends them to us.
func handedOn() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// sentByTerminal reports whether the command has the signal already: a terminal
// sends INT and QUIT to the whole process group in its foreground, which the
// command is in like us. Many programs take a second INT for an order to drop
// everything. One that a process sends to us alone can't be told from it there.
func sentByTerminal(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = terminal.Close() }() // it was only asked
	foreground, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}
