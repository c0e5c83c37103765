package ingest

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// bodyPatience is how long a pod has to send an artifact.
	bodyPatience = 5 * time.Second
	// unreadPatience is how long a refused post has to send the rest of it.
	unreadPatience = time.Second
	// maxUnread is how much of a refused post is read, so that the connection can
	// be used again: the largest artifact.
	maxUnread = 1 << 10
)

// read returns the artifact. The length that was declared is not relied on. The
// server takes the deadline off again when it has the whole body.
func read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, Reason) {
	deadline(w, bodyPatience)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		w.Header().Set("Connection", "close") // nobody waits for the rest
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, ReasonTooLarge
		}
		return nil, ReasonInterrupted
	}
	return body, ""
}

// deadline bounds reading. Where something wraps the writer that hides this, the
// listener's own ReadTimeout does.
func deadline(w http.ResponseWriter, in time.Duration) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(in))
}

// leave decides on what of a body nobody will read: a little is drained, which is
// worth a connection. Of the rest nothing is: the server alone would drain up to
// 256 KiB, for as long as a request may take.
func leave(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.ContentLength == 0:
		return
	case w.Header().Get("Connection") == "close": // read has given up
	case r.ContentLength > 0 && r.ContentLength <= maxUnread: // the server drains it before the answer
		deadline(w, unreadPatience)
		return
	case r.ContentLength < 0:
		deadline(w, unreadPatience)
		if _, err := io.CopyN(io.Discard, r.Body, maxUnread+1); errors.Is(err, io.EOF) {
			return
		}
	}
	w.Header().Set("Connection", "close")
	deadline(w, 0)
}
