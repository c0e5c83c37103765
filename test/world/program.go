package world

import "context"

// Program adds a program to the world, such as a CI system of a demo. It isn't
// started yet; ready returns nil once it serves. It ends with the world.
func (w *World) Program(name, path string, ready func(context.Context) error, args ...string) *Process {
	return w.table.add(command{name: name, path: path, args: args, ready: ready, graceful: true})
}

// Runs says whether all processes of the detached world in dir run.
func Runs(dir string) bool {
	records, err := readRecords(dir)
	for _, r := range records {
		if !r.runs() {
			return false
		}
	}
	return err == nil && len(records) > 0
}
