// Package otlp is a collector of OpenTelemetry spans for tests: it takes them by
// OTLP over gRPC, on loopback and without TLS, as an agent beside an API server
// does, and keeps all of them in memory.
package otlp

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"
)

// Collector is a running collector.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer
	listener net.Listener
	server   *grpc.Server
	served   func() error // waits for the end of serving

	mu    sync.Mutex
	spans []Span
}

// Span is a span as it was exported. Ids are in hexadecimal.
type Span struct {
	// Service is what the exporter calls itself.
	Service string
	Name    string
	// TraceID and ID are the span's own. Parent is empty where it has none.
	TraceID, ID, Parent string
	// LinkedTraces are the ids of the traces that it's linked to.
	LinkedTraces []string
	// Attributes are those that are a text.
	Attributes map[string]string
	// Text is all that was exported of it.
	Text string
}

// Start starts a collector on a free port.
func Start() (*Collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a collector of spans: %w", err)
	}
	c := &Collector{listener: listener, server: grpc.NewServer()}
	collectorv1.RegisterTraceServiceServer(c.server, c)
	ended := make(chan error, 1)
	go func() { ended <- c.server.Serve(listener) }()
	c.served = sync.OnceValue(func() error { return <-ended })
	return c, nil
}

// Endpoint is where it listens, as a TracingConfiguration names it.
func (c *Collector) Endpoint() string { return c.listener.Addr().String() }

// Close ends the collector; a second call does nothing. What it took can still be
// read.
func (c *Collector) Close() error {
	c.server.Stop()
	if err := c.served(); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil // it was closed before it began
}

// Export takes spans.
func (c *Collector) Export(_ context.Context, request *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range request.GetResourceSpans() {
		service := ""
		for _, attribute := range of.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, newSpan(service, span))
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func newSpan(service string, exported *tracev1.Span) Span {
	span := Span{
		Service: service, Name: exported.GetName(),
		TraceID: hex.EncodeToString(exported.GetTraceId()),
		ID:      hex.EncodeToString(exported.GetSpanId()),
		Parent:  hex.EncodeToString(exported.GetParentSpanId()),

		Attributes: map[string]string{},
		Text:       prototext.Format(exported),
	}
	for _, attribute := range exported.GetAttributes() {
		if text := attribute.GetValue().GetStringValue(); text != "" {
			span.Attributes[attribute.GetKey()] = text
		}
	}
	for _, link := range exported.GetLinks() {
		span.LinkedTraces = append(span.LinkedTraces, hex.EncodeToString(link.GetTraceId()))
	}
	return span
}

// Spans are those that came so far, in the order in which they did.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}
