//go:build !linux

package world

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os/exec"
)

var errNoEnclave = errors.New("a node runs on Linux alone")

// enclave is where the processes of a node live. Only Linux has what it's made of.
type enclave struct {
	first           *Process
	address, bridge netip.Addr
	subnet          netip.Prefix
}

func newEnclave(context.Context, *World, string) (*enclave, error) { return nil, errNoEnclave }

func (e *enclave) id() string                 { return "" }
func (e *enclave) inside(cmd *exec.Cmd) error { return errNoEnclave }
func (e *enclave) beside(cmd *exec.Cmd) error { return errNoEnclave }
func (e *enclave) run(context.Context, io.Reader, string, ...string) error {
	return errNoEnclave
}

// sweep has nothing to remove.
func sweep(context.Context) error { return nil }

// permitted says that it isn't.
func permitted() error { return errNoEnclave }
