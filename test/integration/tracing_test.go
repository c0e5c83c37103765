package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/otlp"
	"cellcast.io/cellcast/test/world"
)

// The trace that the caller brings, which it wants to have written.
const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	traceparent  = "00-" + callersTrace + "-b7ad6b7169203331-01"
	callersNote  = "a-note-for-the-cell"
)

// A placement is one trace at the hub, from authentication to the request to
// the cell. The cell begins a trace of its own and links it to the hub's, as the
// hub does with the caller's: neither takes orders on what is sampled. The audit
// id joins all of it to the audit trail, and no token is in any span.
func TestAPlacementIsOneTraceThatGoesOnAtTheCell(t *testing.T) {
	require(t)
	cell, atCell := tracedCell(t)
	policy(t, unique(t), func(spec *registryv1alpha1.PlacementPolicySpec) {
		spec.ClusterSelector.MatchLabels = map[string]string{"traced": "yes"}
	})
	trail, err := os.Create(filepath.Join(t.TempDir(), "trail"))
	if err != nil {
		t.Fatal(err)
	}
	defer trail.Close()
	atHub, config := collector(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200") // ms
	server, _ := replica(t, unique(t), world.ServerOptions{Stdout: trail, Args: []string{"--tracing-config-file=" + config}})
	if code, answer := postTo(t, server.URL, capacityOf(cell), reporter(t, "prod-eu"), report(t, nil)); code != http.StatusCreated {
		t.Fatalf("the report of %s: %d %s", cell, code, answer)
	}

	shown, client := tracing(t, server)
	minted := sealed(t, client, ask("payments/api").Spec)
	clear, err := placeInTheClear(t, client)
	if err != nil {
		t.Fatal(err)
	}
	if code, _ := postTo(t, server.URL, placementsPath, shown+"x", question); code != http.StatusUnauthorized {
		t.Fatalf("a broken token gets %d", code)
	}

	var trace map[string]otlp.Span
	eventually(t, "the hub's spans are there", func(context.Context) (err error) {
		trace, err = traceOf(atHub.Spans(), "mint")
		return err
	})
	placement, mint, asked := trace["POST /apis/cellcast.io/v1alpha1/placements"], trace["mint"], trace["HTTP POST"]
	if placement.Parent != "" || placement.TraceID == callersTrace || !slices.Equal(placement.LinkedTraces, []string{callersTrace}) {
		t.Errorf("the hub's trace isn't its own, with a link to the caller's: %s", placement.Text)
	}
	if mint.Attributes["cell"] != cell || mint.Service != "cellcast-hub" || asked.Parent != mint.ID {
		t.Errorf("the request to the cell isn't under the mint: %s%s", mint.Text, asked.Text)
	}
	if !strings.HasSuffix(asked.Attributes["url.full"], "/api/v1/namespaces/payments/serviceaccounts/deployer/token") {
		t.Errorf("another request to the cell: %s", asked.Text)
	}
	if filter, score := trace["filter"], trace["score"]; filter.Parent != mint.Parent || score.Parent != mint.Parent {
		t.Errorf("filter, score and mint are no siblings: %s%s%s", filter.Text, score.Text, mint.Text)
	}
	if trace["authenticate"].Parent == "" {
		t.Errorf("authenticate is missing, or isn't under the placement: %s", trace["authenticate"].Text)
	}

	auditID := placement.Attributes["audit-id"]
	if events := audited(t, trail.Name(), auditID); !slices.Equal(events, []string{"placement", "mint"}) {
		t.Errorf("the audit records of %q are %v", auditID, events)
	}
	eventually(t, "the cell's span is there", func(context.Context) error {
		for _, span := range atCell.Spans() {
			if slices.Equal(span.LinkedTraces, []string{placement.TraceID}) && span.Attributes["audit-id"] == auditID &&
				span.Name == "POST /api/v1/namespaces/{:namespace}/serviceaccounts/{:name}/token" && span.TraceID != placement.TraceID {
				return nil
			}
		}
		return fmt.Errorf("of %d spans none is a TokenRequest linked to %s", len(atCell.Spans()), placement.TraceID)
	})
	for _, span := range append(atHub.Spans(), atCell.Spans()...) {
		for _, token := range []string{shown, minted, clear} {
			if shows(span.Text, token) {
				t.Errorf("part of a token is in span %s", span.Name)
			}
		}
		// What every token begins with, that of the hub itself too.
		if strings.Contains(span.Text, "eyJhbGciOi") || strings.Contains(span.Text, callersNote) {
			t.Errorf("a token or the caller's baggage is in span %s: %s", span.Name, span.Text)
		}
	}
}

// Spans are worth less than placements, and than an end in good time.
func TestACollectorThatIsAwayCostsNothing(t *testing.T) {
	require(t)
	policy(t, unique(t), nil)
	away, config := collector(t)
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	// Whoever waits for an export that fails waits half a minute, and is cut off.
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60000") // ms
	server, client := replica(t, unique(t), world.ServerOptions{Args: []string{"--tracing-config-file=" + config}})
	for range 20 {
		if _, err := place(t.Context(), client, ask("payments/api")); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := server.Terminate(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the replica took %s to end", took)
	}
}

// collector starts a collector of spans, and writes the configuration of an API
// server that sends it all of them.
func collector(t *testing.T) (*otlp.Collector, string) {
	t.Helper()
	c, err := otlp.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	config := filepath.Join(t.TempDir(), "tracing.yaml")
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: " + c.Endpoint() + "\nsamplingRatePerMillion: 1000000\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return c, config
}

// tracing is a client of a pipeline that brings a trace and baggage of its own,
// and the token that it shows.
func tracing(t *testing.T, server *world.Server) (token string, _ versioned.Interface) {
	t.Helper()
	token, err := hub.Token(unique(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	config := hub.Direct(token)
	config.Host = server.URL
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bringing{next} })
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return token, client
}

type bringing struct{ next http.RoundTripper }

func (b bringing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", traceparent)
	r.Header.Set("Baggage", "note="+callersNote)
	return b.next.RoundTrip(r)
}

// traceOf returns the first trace that has a span of this name and has its root
// too, by the names of its spans.
func traceOf(spans []otlp.Span, name string) (map[string]otlp.Span, error) {
	at := slices.IndexFunc(spans, func(s otlp.Span) bool { return s.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("of %d spans none is %s", len(spans), name)
	}
	trace, whole := map[string]otlp.Span{}, false
	for _, span := range spans {
		if span.TraceID == spans[at].TraceID {
			trace[span.Name] = span
			whole = whole || span.Parent == ""
		}
	}
	if !whole {
		return nil, fmt.Errorf("the root of %s isn't there", spans[at].TraceID)
	}
	return trace, nil
}

// audited returns the events of the audit records of one request.
func audited(t *testing.T, trail, auditID string) (events []string) {
	t.Helper()
	for line := range bytes.Lines([]byte(read(t, trail))) {
		var record struct {
			Event   string
			AuditID string `json:"audit_id"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatal(err)
		}
		if record.AuditID == auditID {
			events = append(events, record.Event)
		}
	}
	return events
}

// tracedCell registers cell prod-eu a second time, by a further kube-apiserver
// on the same store that writes traces. It has an audience of its own: no two
// rows may share one.
func tracedCell(t *testing.T) (name string, _ *otlp.Collector) {
	t.Helper()
	cell := hub.Cell("prod-eu")
	running, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cell.APIServer.PID()))
	if err != nil {
		t.Skipf("how the cell's API server runs can't be read here: %v", err)
	}
	port, err := hub.TakePort()
	if err != nil {
		t.Fatal(err)
	}
	spans, config := collector(t)
	row := stranger(unique(t), map[string]string{"env": "dev", "traced": "yes"})
	row.Spec.Endpoint = fmt.Sprintf("https://127.0.0.1:%d", port)
	args := strings.Split(strings.TrimSuffix(string(running), "\x00"), "\x00")
	further := exec.CommandContext(t.Context(), args[0], append(args[1:],
		fmt.Sprintf("--secure-port=%d", port),
		"--audit-log-path="+filepath.Join(t.TempDir(), "audit.log"),
		"--authentication-config="+trusting(t, args, cell.Audience, row.Spec.Trust.Audience),
		"--tracing-config-file="+config)...)
	if err := further.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = further.Wait() }) // it was killed when t.Context() ended

	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: cell.CABundle}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the further API server is ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, row.Spec.Endpoint+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("got %s", response.Status)
		}
		return nil
	})
	register(t, row)
	return row.Name, spans
}

// trusting writes the AuthenticationConfiguration that the flags name with
// another audience.
func trusting(t *testing.T, args []string, audience, other string) string {
	t.Helper()
	for _, arg := range args {
		if file, ok := strings.CutPrefix(arg, "--authentication-config="); ok {
			changed := filepath.Join(t.TempDir(), "authentication.yaml")
			if err := os.WriteFile(changed, []byte(strings.ReplaceAll(read(t, file), audience, other)), 0o600); err != nil {
				t.Fatal(err)
			}
			return changed
		}
	}
	t.Fatalf("the cell's API server has no --authentication-config: %q", args)
	return ""
}
