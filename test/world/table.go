package world

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// table is the world's processes in the order in which they were added. It
// starts no process once it has begun to stop, so that a start that is
// cancelled half-way leaves nothing behind.
type table struct {
	dir    string
	detach bool

	mu        sync.Mutex
	stopping  bool
	processes []*Process
}

func newTable(dir string, detach bool) *table {
	return &table{dir: dir, detach: detach}
}

// add makes a process, which isn't started yet.
func (t *table) add(c command) *Process {
	p := &Process{command: c, table: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.processes = append(t.processes, p)
	return p
}

// launch begins a life of p and writes it down.
func (t *table) launch(p *Process) (*run, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping {
		return nil, errors.New("the world is stopping")
	}
	r, err := p.launch(t.detach)
	if err != nil {
		return nil, err
	}
	return r, t.record()
}

// stop ends all processes: first, side by side, those that end by themselves,
// while what they talk to is still there; then the rest.
func (t *table) stop() error {
	t.mu.Lock()
	t.stopping = true
	processes := t.processes
	t.mu.Unlock()

	err := errors.Join(
		each(processes, func(p *Process) error {
			if p.graceful {
				return p.Stop()
			}
			return nil
		}),
		each(processes, (*Process).Kill),
	)
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(err, t.record())
}

// each calls f on every process at once and joins the errors.
func each(processes []*Process, f func(*Process) error) error {
	errs := make([]error, len(processes))
	var wait sync.WaitGroup
	for i, p := range processes {
		wait.Go(func() { errs[i] = f(p) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// tail returns the end of a log for an error message.
func tail(path string) string {
	const most = 2048
	content, err := os.ReadFile(path)
	if err != nil || len(content) == 0 {
		return ""
	}
	if len(content) > most {
		content = content[len(content)-most:]
	}
	return fmt.Sprintf("\nthe end of %s:\n%s", path, content)
}
