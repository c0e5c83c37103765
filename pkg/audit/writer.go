package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"sync"
)

// Output takes lines from many at once, and keeps them whole and apart.
type Output interface {
	// Write returns once the line is written. It waits for no offered line but
	// the one that is being written.
	io.Writer
	// Offer returns at once: with an error where there is no room for the line.
	// Where the line is taken in and can't be written later, lost is told.
	Offer(line []byte, lost func(error)) error
}

// Writer is the Sink of the trail itself: one line of JSON per record. No log
// level applies to it. Records that strangers cause are offered to the output
// and not waited for, so that a flood of them keeps nobody else's from being
// written.
type Writer struct {
	out    Output
	report func(error)

	mu   sync.Mutex
	lost map[Event]uint64
}

// NewWriter returns a Writer to out. A record that can't be written is counted
// and given to report, which may be nil; the Writer goes on with the next. Of
// strangers' records report hears nothing: it would be flooded with them.
func NewWriter(out Output, report func(error)) *Writer {
	if report == nil {
		report = func(error) {}
	}
	w := &Writer{out: out, report: report, lost: map[Event]uint64{}}
	for _, event := range Events() {
		w.lost[event] = 0
	}
	return w
}

// Write writes the record as one line; line breaks and control characters in
// texts are escaped. An error means that the line isn't known to be written: it
// may still be there, in part or whole.
func (w *Writer) Write(record Record) error {
	record = bounded(record)
	err := w.write(record)
	if err == nil {
		return nil
	}
	w.count(record.Event)
	err = fmt.Errorf("writing the audit record of %s %s: %w", record.Event, record.RequestID, err)
	if !record.Event.ByStranger() {
		w.report(err)
	}
	return err
}

func (w *Writer) write(record Record) error {
	event := record.Event // what is offered holds no more of the record
	line, err := json.Marshal(record)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if event.ByStranger() {
		return w.out.Offer(line, func(error) { w.count(event) })
	}
	n, err := w.out.Write(line)
	if err == nil && n != len(line) {
		return io.ErrShortWrite
	}
	return err
}

// Lost is the number of records that could not be written, by event; each event
// has one.
func (w *Writer) Lost() map[Event]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.lost)
}

func (w *Writer) count(event Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost[event]++
}
