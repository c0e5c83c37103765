//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// windowOf returns how to ask a terminal for the size of its window; nil where the
// file is none.
func windowOf(f *os.File) func() (width, height int) {
	if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err != nil || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() (int, int) {
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0, 0
		}
		return int(size.Col), int(size.Row)
	}
}
