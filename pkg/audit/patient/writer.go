// Package patient writes to something that may hang, such as a pipe that nobody
// reads any more, and doesn't hang with it: whoever writes learns within a
// bounded time whether the line is there, and what waits takes bounded memory.
//
// An error says that the line isn't known to be written. It may be written
// later: a line that was taken in is never thrown away, so that there can be a
// line too many in the file, and never one too few that was said to be there.
package patient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// Patience is how long a write may take.
	Patience = 2 * time.Second
	// maxWaiting is the most bytes that wait to be written.
	maxWaiting = 16 << 20
	// minLine is what a line counts for at least, which bounds their number.
	minLine = 1 << 10
)

var (
	// ErrSlow: the line was not written within Patience.
	ErrSlow = errors.New("not written within " + Patience.String())
	// ErrClosed: the Writer was closed.
	ErrClosed = errors.New("the writer is closed")
)

// Writer is an io.Writer whose Write returns within Patience. It keeps the order
// and the bounds of concurrent writes.
type Writer struct {
	out   io.Writer
	room  *semaphore.Weighted
	lines chan line
	close sync.Once
	done  chan struct{}
}

type line struct {
	text    []byte
	weight  int64
	written chan error // capacity one: nobody may be waiting any more
}

var _ io.Writer = &Writer{}

// NewWriter returns a Writer to out, which nobody else may write to.
func NewWriter(out io.Writer) *Writer {
	w := &Writer{
		out:   out,
		room:  semaphore.NewWeighted(maxWaiting),
		lines: make(chan line, maxWaiting/minLine),
		done:  make(chan struct{}),
	}
	go w.run()
	return w
}

// Close ends the Writer once out lets go of the write under way. Lines that
// wait behind it are dropped, for nobody was told that they are written.
func (w *Writer) Close() { w.close.Do(func() { close(w.done) }) }

// Write returns len(text), nil once all of the text is written.
func (w *Writer) Write(text []byte) (int, error) {
	// The time includes the wait for room.
	wait, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	weight := min(max(int64(len(text)), minLine), maxWaiting)
	// The text is the caller's again when Write returns, written or not.
	l := line{text: bytes.Clone(text), weight: weight, written: make(chan error, 1)}
	if w.room.Acquire(wait, l.weight) != nil {
		return 0, ErrSlow
	}
	select {
	case w.lines <- l: // has room: no line weighs less than minLine
	case <-w.done:
		return 0, ErrClosed
	}
	select {
	case err := <-l.written:
		if err != nil {
			return 0, err
		}
		return len(text), nil
	case <-wait.Done():
		return 0, ErrSlow
	case <-w.done:
		return 0, ErrClosed
	}
}

// run writes line after line. After one that failed, out may end in a part of
// it: the next begins on a line of its own, so that it can be read.
func (w *Writer) run() {
	torn := false
	for {
		select {
		case <-w.done:
			return
		case l := <-w.lines:
			text := l.text
			if torn {
				text = append([]byte{'\n'}, text...)
			}
			err := writeAll(w.out, text)
			torn = err != nil
			w.room.Release(l.weight)
			l.written <- err
		}
	}
}

func writeAll(out io.Writer, text []byte) error {
	n, err := out.Write(text)
	if err == nil && n != len(text) {
		err = fmt.Errorf("%w: %d of %d bytes", io.ErrShortWrite, n, len(text))
	}
	return err
}
