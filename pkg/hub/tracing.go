package hub

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/clock"
)

// A trace of a placement shows authenticate, filter, score and mint, and goes
// on at the cell. The API server begins it after authentication, for who is
// known; of who isn't, it writes no more than a lone span, "authentication". What
// came before is added to the trace here, with the times that were noted. The
// span is under the API server's last one, though it came before that.

// noted is when the authentication of one request began and ended.
type noted struct{ began, ended time.Time }

type notedKey struct{}

// withNote gives each request a place to note them in. It's the outermost
// handler.
func withNote(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), notedKey{}, &noted{})))
	})
}

// noting is an authenticator that notes them.
func noting(next authenticator.Request, clock clock.PassiveClock) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		began := clock.Now()
		response, ok, err := next.AuthenticateRequest(r)
		if note, has := r.Context().Value(notedKey{}).(*noted); has {
			note.began, note.ended = began, clock.Now()
		}
		return response, ok, err
	})
}

// withAuthenticateSpan adds them to the trace that the request has by now.
func withAuthenticateSpan(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if note, has := r.Context().Value(notedKey{}).(*noted); has && !note.ended.IsZero() {
			tracer := trace.SpanFromContext(r.Context()).TracerProvider().Tracer("cellcast.io/hub")
			_, span := tracer.Start(r.Context(), "authenticate", trace.WithTimestamp(note.began))
			span.End(trace.WithTimestamp(note.ended))
		}
		next.ServeHTTP(w, r)
	})
}
