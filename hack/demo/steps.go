package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// step is one thing that the demo shows: a command as a person would type it,
// and what must come of it.
type step struct {
	title   string
	command string
	// exit is the exit status that the command must have.
	exit int
	// says is what its output must contain, lacks what it must not.
	says, lacks []string
	// pod says that it needs one which runs.
	pod bool
}

// steps does the script. Every step is shown with its real command and its real
// output; one that comes out otherwise than it must is marked and counted.
func steps(ctx context.Context) error {
	env, err := environment()
	if err != nil {
		return err
	}
	why, err := podless()
	if err != nil {
		return err
	}
	all, passed, left := script(), 0, 0
	for i, s := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.pod && why != "" {
			fmt.Printf("\n%2d. Left out, for it needs a pod that runs: %s\n", i+1, s.title)
			left++
			continue
		}
		fmt.Printf("\n%2d. %s\n    $ %s\n", i+1, s.title, s.command)
		wrong, err := s.do(ctx, env)
		if err != nil {
			return err
		}
		if wrong != "" {
			fmt.Printf("    FAILED: %s\n", wrong)
			continue
		}
		passed++
	}
	fmt.Printf("\ndemo: %d of %d steps passed\n", passed, len(all)-left)
	if left > 0 {
		fmt.Printf("demo: %d more were left out: %s\n", left, why)
	}
	if failed := len(all) - left - passed; failed > 0 {
		return fmt.Errorf("%d steps failed; logs are in %s/logs", failed, folder)
	}
	return nil
}

// do runs the command, shows what it prints, and says what is wrong with that.
func (s step) do(ctx context.Context, env []string) (string, error) {
	output, exit, err := sh(ctx, s.command, env)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(output) {
		fmt.Printf("    %s", line)
	}
	if exit != 0 {
		fmt.Printf("    (exit status %d)\n", exit)
	}
	return s.wrong(output, exit), nil
}

// wrong says what is wrong with how the step came out.
func (s step) wrong(output string, exit int) string {
	if exit != s.exit {
		return fmt.Sprintf("exit status %d, not %d", exit, s.exit)
	}
	for _, text := range s.says {
		if !strings.Contains(output, text) {
			return fmt.Sprintf("the output lacks %q", text)
		}
	}
	for _, text := range s.lacks {
		if strings.Contains(output, text) {
			return fmt.Sprintf("the output has %q", text)
		}
	}
	return ""
}

// environment is what the script's commands run with: our programs first on
// the path, and the pipeline's way to the hub.
func environment() ([]string, error) {
	bin, err := filepath.Abs("bin")
	if err != nil {
		return nil, err
	}
	hub, err := os.ReadFile(filepath.Join(folder, "hub.url"))
	if err != nil {
		return nil, err
	}
	path := bin
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		path += string(os.PathListSeparator) + assets
	}
	return append(os.Environ(),
		"PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG=",
		"CELLCAST_HUB="+string(hub),
		"CELLCAST_HUB_CA="+filepath.Join(folder, "hub-ca.pem"),
		"CELLCAST_TOKEN_FILE="+filepath.Join(folder, "pipeline.token"),
		"CELLCAST_CACHE_DIR="+filepath.Join(folder, "cache"),
	), nil
}
