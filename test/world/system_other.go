//go:build !linux

package world

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes keep a terminal's Ctrl-C from reaching the child before we end it
// in order. Only Linux can end a child with its parent.
func attributes(detach bool) *syscall.SysProcAttr {
	if detach {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// startOf tells the process from every other that has or had its id, to the
// second.
func startOf(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "state=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", err
	}
	state, began, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if began == "" || strings.HasPrefix(state, "Z") {
		return "", errors.New("the process has ended")
	}
	return strings.TrimSpace(began), nil
}
