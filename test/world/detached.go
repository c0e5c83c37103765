package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// record is a running process as it stands in Dir/processes.json. A process id
// alone proves nothing, for the system gives it out again: started tells the
// process from any other that ever had the id.
type record struct {
	Name     string `json:"name"`
	PID      int    `json:"pid"`
	Started  string `json:"started"`
	Graceful bool   `json:"graceful,omitempty"`
}

func recordFile(dir string) string { return filepath.Join(dir, "processes.json") }

// record writes down which processes run. The caller holds the lock.
func (t *table) record() error {
	var records []record
	for _, p := range t.processes {
		pid := p.PID()
		if pid == 0 {
			continue
		}
		began, err := startOf(pid)
		if err != nil {
			continue // it ended between the two lines
		}
		records = append(records, record{Name: p.name, PID: pid, Started: began, Graceful: p.graceful})
	}
	content, err := json.MarshalIndent(records, "", "  ")
	if err != nil {
		return fmt.Errorf("recording processes: %w", err)
	}
	// Whole or not at all: a reader must never see half of the list.
	half := recordFile(t.dir) + ".new"
	if err := os.WriteFile(half, content, 0o600); err != nil {
		return fmt.Errorf("recording processes: %w", err)
	}
	if err := os.Rename(half, recordFile(t.dir)); err != nil {
		return fmt.Errorf("recording processes: %w", err)
	}
	return nil
}

// StopDetached ends the processes of the detached world in dir, and none
// besides: a process whose start doesn't agree with the record isn't touched.
// It returns the names of those that it ended. A folder without a record means
// that nothing runs.
func StopDetached(ctx context.Context, dir string) ([]string, error) {
	records, err := readRecords(dir)
	if err != nil {
		return nil, err
	}
	var ended []string
	var errs []error
	for _, graceful := range []bool{true, false} {
		for _, r := range slices.Backward(records) {
			if r.Graceful != graceful {
				continue
			}
			did, err := r.stop(ctx)
			if did {
				ended = append(ended, r.Name)
			}
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return ended, err
	}
	return ended, errors.Join(sweep(ctx), os.RemoveAll(recordFile(dir)))
}

// vacate clears the folder of an earlier world's state. It refuses while that
// world runs.
func vacate(dir string) error {
	records, err := readRecords(dir)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.runs() {
			return fmt.Errorf("a world runs in %s already (%s is process %d): end it first", dir, r.Name, r.PID)
		}
	}
	for _, old := range []string{"etcd", "logs", "processes.json"} {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			return fmt.Errorf("clearing an earlier world's state: %w", err)
		}
	}
	return nil
}

// readRecords returns what stands in the record; nothing where there is none.
func readRecords(dir string) ([]record, error) {
	content, err := os.ReadFile(recordFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which processes run: %w", err)
	}
	var records []record
	if err := json.Unmarshal(content, &records); err != nil {
		return nil, fmt.Errorf("reading %s: %w", recordFile(dir), err)
	}
	return records, nil
}

// stop ends the recorded process and says whether it was there.
func (r record) stop(ctx context.Context) (bool, error) {
	// FindProcess comes before the comparison: where the system has handles on
	// processes, the signal then goes to the one that was compared.
	process, err := os.FindProcess(r.PID)
	if err != nil {
		return false, nil
	}
	defer process.Release()
	if !r.runs() {
		return false, nil
	}
	signals := []syscall.Signal{syscall.SIGKILL}
	if r.Graceful {
		signals = []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}
	}
	for _, s := range signals {
		if err := process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return false, fmt.Errorf("ending %s (process %d): %w", r.Name, r.PID, err)
		}
		if r.gone(ctx, endsWithin(s)) {
			return true, nil
		}
	}
	return false, fmt.Errorf("ending %s: process %d is still there", r.Name, r.PID)
}

// gone waits until the process has ended, at most for the time given.
func (r record) gone(ctx context.Context, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for r.runs() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(readyEvery):
		}
	}
	return true
}

// runs says whether the very process of the record still runs.
func (r record) runs() bool {
	began, err := startOf(r.PID)
	return err == nil && began == r.Started
}
