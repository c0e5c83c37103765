package cell

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func TestACellIsToldOfTheTraceAndOfNothingElse(t *testing.T) {
	var told http.Header
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = r.Header.Clone()
		_, _ = io.WriteString(w, `{"keys":[]}`)
	}))
	defer server.Close()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	client := clientOf(t, server, Options{Tracing: provider})
	brought, err := baggage.Parse("note=of-the-caller")
	if err != nil {
		t.Fatal(err)
	}
	ctx, mint := provider.Tracer("test").Start(baggage.ContextWithBaggage(t.Context(), brought), "mint")
	if _, err := client.JWKS(ctx); err != nil {
		t.Fatal(err)
	}

	ended := spans.Ended()
	if len(ended) != 1 || ended[0].SpanKind() != trace.SpanKindClient || ended[0].Parent().SpanID() != mint.SpanContext().SpanID() {
		t.Fatalf("want one span of the call, a child of mint's: %v", ended)
	}
	of := ended[0].SpanContext()
	if want := "00-" + mint.SpanContext().TraceID().String() + "-" + of.SpanID().String() + "-01"; told.Get("Traceparent") != want {
		t.Errorf("traceparent is %q, want %q", told.Get("Traceparent"), want)
	}
	if got := told.Get("Baggage"); got != "" {
		t.Errorf("the caller's baggage reached the cell: %q", got)
	}
}
