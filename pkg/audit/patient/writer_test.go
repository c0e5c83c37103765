package patient

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pipe is an output that takes a write when somebody reads, and what it was told
// to take of it.
type pipe struct {
	reads chan int // how many bytes of the next write are taken; -1 for all
	mu    sync.Mutex
	text  strings.Builder
}

var errFull = errors.New("no space left")

func (p *pipe) Write(text []byte) (int, error) {
	n := <-p.reads
	if n < 0 {
		n = len(text)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Write(text[:n])
	if n < len(text) {
		return n, errFull
	}
	return n, nil
}

func (p *pipe) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func open(t *testing.T) (*pipe, *Writer) {
	out := &pipe{reads: make(chan int)}
	w := NewWriter(out)
	t.Cleanup(func() {
		w.Close()
		close(out.reads) // lets go of the write under way
	})
	return out, w
}

func TestAWriteReturnsOnceItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, w := open(t)
		written := make(chan error)
		go func() {
			n, err := w.Write([]byte("one\n"))
			if n != 4 {
				err = fmt.Errorf("%d bytes, %w", n, err)
			}
			written <- err
		}()
		synctest.Wait()
		select {
		case <-written:
			t.Fatal("it returned before anybody read")
		default:
		}
		out.reads <- -1
		if err := <-written; err != nil || out.String() != "one\n" {
			t.Errorf("got %v and %q", err, out.String())
		}
	})
}

func TestAPipeThatNobodyReadsCostsTwoSecondsAndTheLineMayComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, w := open(t)
		began := time.Now()
		text := []byte("one\n")
		if _, err := w.Write(text); !errors.Is(err, ErrSlow) {
			t.Errorf("got %v", err)
		}
		copy(text, "xxxx") // the caller's own again
		if took := time.Since(began); took != Patience {
			t.Errorf("it took %s", took)
		}
		if _, err := w.Write([]byte("two\n")); !errors.Is(err, ErrSlow) {
			t.Errorf("got %v", err)
		}
		out.reads <- -1
		out.reads <- -1
		go func() { out.reads <- -1 }()
		if _, err := w.Write([]byte("three\n")); err != nil {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff("one\ntwo\nthree\n", out.String()); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

func TestWhatWaitsTakesBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := open(t)
		large := make([]byte, maxWaiting/4)
		refused := make(chan error, 100)
		for range 100 {
			go func() { _, err := w.Write(large); refused <- err }()
		}
		synctest.Wait()
		// One is being written, which counts too.
		if waiting := len(w.waiting.lines); waiting != 3 {
			t.Errorf("%d lines wait, want 3", waiting)
		}
		for range 100 {
			if err := <-refused; !errors.Is(err, ErrSlow) {
				t.Fatalf("got %v", err)
			}
		}
	})
}

func TestManyShortLinesDontBlockBeyondThePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := open(t)
		const callers = maxWaiting/minLine + 100
		began := time.Now()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() { _, _ = w.Write([]byte("x")) })
		}
		all.Wait()
		if took := time.Since(began); took != Patience {
			t.Errorf("it took %s", took)
		}
	})
}

func TestOfferedLinesHaveALittleRoomAndNobodyWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, w := open(t)
		lost := func(error) {} // at the end, when nobody reads any more
		if err := w.Offer([]byte("one\n"), lost); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it's being written, which counts too
		began := time.Now()
		taken := 1
		for range 2 * maxOffered / minLine {
			switch err := w.Offer([]byte("more\n"), lost); {
			case err == nil:
				taken++
			case !errors.Is(err, ErrFull):
				t.Fatalf("got %v", err)
			}
		}
		if took := time.Since(began); taken != 1024 || took != 0 {
			t.Errorf("%d lines were taken in %s, want 1024 at once", taken, took)
		}
		out.reads <- -1
		synctest.Wait()
		if err := w.Offer([]byte("more\n"), lost); err != nil {
			t.Errorf("there is room again: %v", err)
		}
	})
}

func TestOfferedLinesGoLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, w := open(t)
		text := []byte("offered 0\n")
		for i := range 3 {
			if err := w.Offer(fmt.Appendf(text[:0], "offered %d\n", i), func(error) {}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for range 10 {
			go func() { _, _ = w.Write([]byte("written\n")) }()
		}
		synctest.Wait()
		for range 13 {
			out.reads <- -1
		}
		synctest.Wait()
		want := "offered 0\n" + strings.Repeat("written\n", 10) + "offered 1\noffered 2\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

func TestALineThatCantBeWrittenLaterIsSaidToBeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, w := open(t)
		var lost []error
		for range 3 {
			if err := w.Offer([]byte("offered\n"), func(err error) { lost = append(lost, err) }); err != nil {
				t.Fatal(err)
			}
		}
		out.reads <- -1
		out.reads <- 3
		out.reads <- -1
		synctest.Wait()
		if len(lost) != 1 || !errors.Is(lost[0], errFull) {
			t.Errorf("got %v", lost)
		}
		if diff := cmp.Diff("offered\noff\noffered\n", out.String()); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

func TestALineAfterATornOneBeginsOnItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, w := open(t)
		go func() { out.reads <- 4; out.reads <- 0; out.reads <- -1; out.reads <- -1 }()
		for i, want := range []error{errFull, errFull, nil, nil} {
			if _, err := fmt.Fprintf(w, "record %d\n", i); !errors.Is(err, want) || (want == nil && err != nil) {
				t.Errorf("record %d: got %v, want %v", i, err, want)
			}
		}
		if diff := cmp.Diff("reco\nrecord 2\nrecord 3\n", out.String()); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

func TestAnOutputThatTakesLessAndSaysNothingIsAnError(t *testing.T) {
	if err := writeAll(short{}, []byte("record")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}

func TestLinesOfConcurrentCallersDontMix(t *testing.T) {
	var out strings.Builder // not safe for use by many: the Writer's goroutine alone writes
	w := NewWriter(&out)
	defer w.Close()
	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			if _, err := fmt.Fprintf(w, "%s\n", strings.Repeat(string(rune('A'+i%26)), 100)); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, line := range lines {
		if line != strings.Repeat(line[:1], 100) {
			t.Errorf("a mixed line: %q", line)
		}
	}
	if len(lines) != 50 {
		t.Errorf("%d of 50 lines", len(lines))
	}
}

func TestWhoeverWaitsForAClosedWriterIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := open(t)
		refused := make(chan error)
		go func() { _, err := w.Write([]byte("x\n")); refused <- err }()
		synctest.Wait()
		w.Close()
		w.Close()
		if err := <-refused; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) - 1, nil }
