package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// inMemory is where the hub keeps the tokens of brought targets: on tmpfs.
	inMemory = "/dev/shm/cellcast-demo-"
	// onDisk is where it does on a system that has none, below folder.
	onDisk = "tokens"
	// tokenDir is the file that says which folder it is.
	tokenDir = "token-dir"
)

// makeTokenDir makes the folder for tokens and returns the hub's flags for it.
func makeTokenDir() ([]string, error) {
	var flags []string
	dir, err := os.MkdirTemp(filepath.Dir(inMemory), filepath.Base(inMemory))
	if errors.Is(err, os.ErrNotExist) {
		flags = []string{"--token-dir-anywhere"}
		dir, err = filepath.Abs(filepath.Join(folder, onDisk)) // the hub makes it
	}
	if err != nil {
		return nil, fmt.Errorf("a folder for tokens: %w", err)
	}
	return append(flags, "--token-dir="+dir), write(tokenDir, []byte(dir))
}

// removeTokenDir removes the folder that the fleet had, which outlives its hub.
func removeTokenDir() error {
	dir, err := os.ReadFile(filepath.Join(folder, tokenDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if strings.HasPrefix(filepath.Clean(string(dir)), inMemory) { // else it's below folder
		err = os.RemoveAll(string(dir))
	}
	return errors.Join(err, os.Remove(filepath.Join(folder, tokenDir)))
}
