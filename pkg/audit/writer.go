package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// MaxText is the most bytes that a record keeps of one text. Some texts are
// the caller's, and a megabyte of workload name must not become a line that
// the log pipeline drops.
const MaxText = 1024

// Writer is the Sink of the trail itself: one line of JSON per record. No log
// level applies to it.
type Writer struct {
	out    io.Writer
	report func(error)
	lost   atomic.Uint64
}

// NewWriter returns a Writer to out, which must keep concurrent writes apart:
// each line is one write. A record that can't be written is counted and given
// to report, which may be nil; the Writer goes on with the next.
func NewWriter(out io.Writer, report func(error)) *Writer {
	if report == nil {
		report = func(error) {}
	}
	return &Writer{out: out, report: report}
}

// Write writes the record as one line; line breaks and control characters in
// texts are escaped. An error means that the line isn't known to be written: it
// may still be there, in part or whole.
func (w *Writer) Write(record Record) error {
	err := w.write(bounded(record))
	if err != nil {
		err = fmt.Errorf("writing the audit record of %s %s: %w", record.Event, record.RequestID, err)
		w.lost.Add(1)
		w.report(err)
	}
	return err
}

// Lost is the number of records that could not be written.
func (w *Writer) Lost() uint64 { return w.lost.Load() }

func (w *Writer) write(record Record) error {
	line, err := json.Marshal(record)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if n, err := w.out.Write(line); err != nil {
		return err
	} else if n != len(line) {
		return io.ErrShortWrite
	}
	return nil
}

// bounded cuts what a caller may have made long and puts times into UTC. The
// texts that the hub itself made are short already.
func bounded(r Record) Record {
	r.Time, r.ExpiresAt, r.RevokesAt = r.Time.UTC(), r.ExpiresAt.UTC(), r.RevokesAt.UTC()
	for _, text := range []*string{
		&r.RequestID, &r.AuditID, &r.User, &r.Issuer, &r.Subject, &r.Workload, &r.Cell, &r.Message, &r.JTI, &r.Kind, &r.Name,
	} {
		*text = cut(*text)
	}
	return r
}

func cut(text string) string {
	if len(text) <= MaxText {
		return text
	}
	const mark = "…"
	end := MaxText - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end]) + mark
}
