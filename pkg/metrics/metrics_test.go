package metrics

import (
	"io"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func counter(r *prometheus.Registry, name, help string, values map[string]float64) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"kind"})
	for kind, v := range values {
		c.WithLabelValues(kind).Add(v)
	}
	r.MustRegister(c)
}

func TestHandlerJoinsFamiliesOfOneName(t *testing.T) {
	a, b := prometheus.NewRegistry(), prometheus.NewRegistry()
	counter(a, "work_total", "work", map[string]float64{"first": 1, "both": 2})
	counter(b, "work_total", "other words", map[string]float64{"second": 3, "both": 9})
	counter(b, "only_b_total", "b", map[string]float64{"x": 4})

	w := httptest.NewRecorder()
	Handler(a, b).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	got, _ := io.ReadAll(w.Body)

	want := `# HELP only_b_total b
# TYPE only_b_total counter
only_b_total{kind="x"} 4
# HELP work_total work
# TYPE work_total counter
work_total{kind="both"} 2
work_total{kind="first"} 1
work_total{kind="second"} 3
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
