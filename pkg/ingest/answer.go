package ingest

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"cellcast.io/cellcast/pkg/audit"
)

// receivePatience bounds the receiver.
const receivePatience = 10 * time.Second

// hand gives the artifact to the receiver. It counts as taken once that is in
// the trail: until then the pod is told to post again.
func (h *Handler) hand(ctx context.Context, p *post, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, receivePatience)
	defer cancel()
	record := h.record(p, audit.EventArtifact)
	record.RequestID = string(uuid.NewUUID())
	record.Outcome = audit.OutcomeAllowed
	news, err := h.receiver.Receive(ctx, Post{Pod: p.pod(), Expected: p.expected, Kind: p.kind, Body: body, At: h.clock.Now()})
	switch {
	case err != nil:
		record.Outcome = audit.OutcomeFailed
	case !news:
		return nil
	}
	record.Time, record.DurationMS = h.clock.Now(), h.took(p)
	if lost := h.audit.Write(record); err == nil {
		err = lost
	}
	if err != nil {
		h.untaken.Do(func() {
			klog.Background().Error(err, "An artifact wasn't taken", "pod", p.name, "kind", p.kind, "target", p.expected.Target, "requestID", record.RequestID)
		})
	}
	return err
}

// refuse answers and records why.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, p *post, reason Reason) {
	deny(w, r, reason.answer())
	record := h.record(p, audit.EventArtifactRefused)
	record.Outcome, record.Reason = audit.OutcomeRefused, string(reason)
	_ = h.audit.Write(record) // a stranger's may be lost, and is counted
}

func (h *Handler) record(p *post, event audit.Event) audit.Record {
	return audit.Record{
		Time: h.clock.Now(), Event: event, Kind: string(p.kind), Name: p.name,
		Target: p.expected.Target, Run: p.expected.Run, DurationMS: h.took(p),
	}
}

// took is in milliseconds.
func (h *Handler) took(p *post) float64 {
	return float64(h.clock.Since(p.began)) / float64(time.Millisecond)
}

func deny(w http.ResponseWriter, r *http.Request, a answer) {
	leave(w, r)
	if a.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if a.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(a.retry/time.Second)))
	}
	http.Error(w, a.text, a.code)
}

// protect sets what keeps a browser from making anything of an answer.
func protect(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Strict-Transport-Security", "max-age=31536000")
	header.Set("X-Content-Type-Options", "nosniff")
}
