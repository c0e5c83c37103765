package agent

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHealthHandler(t *testing.T) {
	var unready error
	handler := healthHandler(func() error { return unready }, newMetrics().registry)
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		body, _ := io.ReadAll(w.Body)
		return w.Code, string(body)
	}

	unready = errors.New("the pods of the cell haven't been read yet")
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable || body != "the pods of the cell haven't been read yet\n" {
		t.Errorf("/readyz before the sync: %d %q", code, body)
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz before the sync: %d, want 200", code)
	}
	unready = nil
	if code, body := get("/readyz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/readyz after the sync: %d %q", code, body)
	}
	code, body := get("/metrics")
	if code != http.StatusOK {
		t.Errorf("/metrics: %d, want 200", code)
	}
	for _, want := range []string{`cellcast_agent_reports_total{outcome="accepted"} 0`, "go_goroutines ", "process_resident_memory_bytes "} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %q", want)
		}
	}
}

func TestServeHealthEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := serveHealth(ctx, "127.0.0.1:0", http.NotFoundHandler()); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestServeHealthSaysWhichFlagIsWrong(t *testing.T) {
	err := serveHealth(t.Context(), "256.0.0.1:1", http.NotFoundHandler())
	if err == nil || !strings.HasPrefix(err.Error(), "listening for probes and metrics (--health-bind-address): ") {
		t.Errorf("error %v", err)
	}
}
