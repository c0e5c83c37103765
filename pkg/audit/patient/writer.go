// Package patient writes to something that may hang, such as a pipe that nobody
// reads any more, and doesn't hang with it: whoever writes learns within a
// bounded time whether the line is there, and what waits takes bounded memory.
// Lines that are merely offered have a small room of their own and come last,
// so that however many they are, no other line waits for more than one of them.
//
// An error says that the line isn't known to be written. It may be written
// later: a line that was taken in is never thrown away, so that there can be a
// line too many in the file, and never one too few that was said to be there.
package patient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// Patience is how long a write may take.
	Patience = 2 * time.Second
	// maxWaiting is the most bytes that wait to be written, and maxOffered the
	// most of offered ones, which count apart.
	maxWaiting = 16 << 20
	maxOffered = 1 << 20
	// minLine is what a line counts for at least, which bounds their number.
	minLine = 1 << 10
)

var (
	// ErrSlow: the line was not written within Patience.
	ErrSlow = errors.New("not written within " + Patience.String())
	// ErrFull: there was no room for an offered line.
	ErrFull = errors.New("too many lines wait")
	// ErrClosed: the Writer was closed.
	ErrClosed = errors.New("the writer is closed")
)

// Writer is an io.Writer whose Write returns within Patience. It keeps the order
// and the bounds of concurrent writes.
type Writer struct {
	out     io.Writer
	waiting queue
	offered queue
	close   sync.Once
	done    chan struct{}
}

var _ io.Writer = &Writer{}

// NewWriter returns a Writer to out, which nobody else may write to.
func NewWriter(out io.Writer) *Writer {
	w := &Writer{
		out:     out,
		waiting: newQueue(maxWaiting),
		offered: newQueue(maxOffered),
		done:    make(chan struct{}),
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
	if w.waiting.room.Acquire(wait, w.waiting.weight(text)) != nil {
		return 0, ErrSlow
	}
	written := make(chan error, 1) // nobody may be waiting any more
	select {
	case w.waiting.lines <- w.waiting.line(text, func(err error) { written <- err }):
	case <-w.done:
		return 0, ErrClosed
	}
	select {
	case err := <-written:
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

// Offer takes the text in and returns at once, with ErrFull where there is no
// room for it. It is written when no line of Write waits; where that fails, lost
// is told, which must not block.
func (w *Writer) Offer(text []byte, lost func(error)) error {
	if !w.offered.room.TryAcquire(w.offered.weight(text)) {
		return ErrFull
	}
	w.offered.lines <- w.offered.line(text, func(err error) {
		if err != nil {
			lost(err)
		}
	})
	return nil
}

// run writes line after line. After one that failed, out may end in a part of
// it: the next begins on a line of its own, so that it can be read.
func (w *Writer) run() {
	torn := false
	for {
		l, from, open := w.next()
		if !open {
			return
		}
		text := l.text
		if torn {
			text = append([]byte{'\n'}, text...)
		}
		err := writeAll(w.out, text)
		torn = err != nil
		from.room.Release(l.weight)
		l.ended(err)
	}
}

// next waits for a line: an offered one only where no other waits. It returns
// the queue that the line was in, and false once the Writer is closed.
func (w *Writer) next() (line, *queue, bool) {
	select {
	case l := <-w.waiting.lines:
		return l, &w.waiting, true
	case <-w.done:
		return line{}, nil, false
	default:
	}
	select {
	case l := <-w.waiting.lines:
		return l, &w.waiting, true
	case l := <-w.offered.lines:
		return l, &w.offered, true
	case <-w.done:
		return line{}, nil, false
	}
}

func writeAll(out io.Writer, text []byte) error {
	n, err := out.Write(text)
	if err == nil && n != len(text) {
		err = fmt.Errorf("%w: %d of %d bytes", io.ErrShortWrite, n, len(text))
	}
	return err
}
