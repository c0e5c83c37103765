package main

import (
	"context"
	"errors"
	"os/exec"
)

// sh runs a command line and returns what it printed, on both outputs, and its
// exit status.
func sh(ctx context.Context, line string, env []string) (string, int, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Env = env
	output, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return string(output), ended.ExitCode(), nil
	}
	return string(output), 0, err
}
