package otlp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"cellcast.io/cellcast/test/otlp"
)

// What the SDK of the API servers exports is what a test reads.
func TestTheCollectorHasWhatWasExported(t *testing.T) {
	collector, err := otlp.Start()
	if err != nil {
		t.Fatal(err)
	}
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(collector.Endpoint()), otlptracegrpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "apiserver"))),
	)
	tracer := provider.Tracer("test")
	ctx, outer := tracer.Start(context.Background(), "outer")
	_, inner := tracer.Start(ctx, "inner", trace.WithAttributes(attribute.String("cell", "prod-eu"), attribute.Int("answered", 201)))
	inner.AddEvent("asked")
	inner.End()
	_, other := tracer.Start(context.Background(), "other", trace.WithLinks(trace.LinkFromContext(ctx)))
	other.End()
	outer.End()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := collector.Close(); err != nil {
		t.Fatal(err)
	}

	if err := collector.Close(); err != nil {
		t.Errorf("closing it again: %v", err)
	}
	got := collector.Spans()
	if len(got) != 3 || !strings.Contains(got[0].Text, `"asked"`) || !strings.Contains(got[0].Text, "201") {
		t.Fatalf("got %+v", got)
	}
	for i := range got {
		got[i].Text = ""
	}
	traceID, outerID := outer.SpanContext().TraceID().String(), outer.SpanContext().SpanID().String()
	want := []otlp.Span{
		{Service: "apiserver", Name: "inner", TraceID: traceID, ID: inner.SpanContext().SpanID().String(), Parent: outerID, Attributes: map[string]string{"cell": "prod-eu"}},
		{Service: "apiserver", Name: "other", TraceID: other.SpanContext().TraceID().String(), ID: other.SpanContext().SpanID().String(), LinkedTraces: []string{traceID}, Attributes: map[string]string{}},
		{Service: "apiserver", Name: "outer", TraceID: traceID, ID: outerID, Attributes: map[string]string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
