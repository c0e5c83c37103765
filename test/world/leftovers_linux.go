package world

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What an enclave has outside of itself: control groups, which nothing but us
// removes, and the link, which the kernel removes some time after.

// sweep removes what enclaves have left here whose first process has ended, be it
// of this world or of another that was killed.
func sweep(ctx context.Context) error {
	var errs []error
	links, err := net.Interfaces()
	errs = append(errs, err)
	for _, link := range links {
		if abandoned(link.Name) {
			// An error means that the kernel was faster.
			_ = execute(ctx, nil, "ip", "link", "delete", link.Name)
		}
	}
	hierarchies, _ := hierarchies() // without one there is nothing in it
	for _, hierarchy := range hierarchies {
		entries, _ := os.ReadDir(hierarchy)
		for _, entry := range entries {
			if abandoned(entry.Name()) {
				errs = append(errs, removeCgroup(ctx, filepath.Join(hierarchy, entry.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

// abandoned says whether the name is that of an enclave which has ended.
func abandoned(name string) bool {
	digits, ours := strings.CutPrefix(name, enclavePrefix)
	pid, err := strconv.Atoi(digits)
	if !ours || err != nil {
		return false
	}
	_, err = startOf(pid)
	return err != nil
}

// makeCgroups makes the control group that a node puts its pods into.
func makeCgroups(name string) error {
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		// In the second version a group has what its parent hands down; in the
		// first the file doesn't exist.
		if control, err := os.OpenFile(filepath.Join(hierarchy, "cgroup.subtree_control"), os.O_WRONLY, 0); err == nil {
			for _, controller := range []string{"cpu", "cpuset", "io", "memory", "pids", "hugetlb"} {
				_, _ = control.WriteString("+" + controller)
			}
			_ = control.Close()
		}
		if err := os.Mkdir(filepath.Join(hierarchy, name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// hierarchies returns where the control groups of this machine are mounted.
func hierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading where control groups are: %w", err)
	}
	var found []string
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) > 4 && len(kind) > 0 && (kind[0] == "cgroup" || kind[0] == "cgroup2") && !slices.Contains(found, fields[4]) {
			found = append(found, fields[4])
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no control groups are mounted")
	}
	return found, nil
}

// removeCgroup removes a control group and all in it. One stays busy for a moment
// after its last process.
func removeCgroup(ctx context.Context, dir string) error {
	var groups []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(ctx, killedWithin)
	defer cancel()
	for _, group := range slices.Backward(groups) {
		for {
			err := os.Remove(group)
			if err == nil || errors.Is(err, os.ErrNotExist) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("removing a control group: %w", err)
			case <-time.After(readyEvery):
			}
		}
	}
	return nil
}
