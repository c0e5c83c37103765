package resilience

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/world"
)

// clientOf is a client of one replica, past the balancer, for a pipeline.
func clientOf(t *testing.T, replica *world.Server) versioned.Interface {
	t.Helper()
	token, err := hub.Token(repositoryID, nil)
	if err != nil {
		t.Fatal(err)
	}
	config := hub.Direct(token)
	config.Host = replica.URL
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// cellsOf are the cells as one replica knows them.
func cellsOf(ctx context.Context, client versioned.Interface) (map[string]cellcastv1alpha1.CellStatus, error) {
	list, err := client.CellcastV1alpha1().Cells().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	cells := map[string]cellcastv1alpha1.CellStatus{}
	for _, cell := range list.Items {
		cells[cell.Name] = cell.Status
	}
	return cells, nil
}

// heardSince is nil once the replica has a fresh report of every cell that came
// in after the time.
func heardSince(ctx context.Context, client versioned.Interface, since time.Time) error {
	cells, err := cellsOf(ctx, client)
	if err != nil {
		return err
	}
	for _, cell := range hub.Cells {
		status := cells[cell.Name]
		if status.Capacity != cellcastv1alpha1.CapacityFresh || status.ReportedAt == nil || !status.ReportedAt.After(since) {
			return fmt.Errorf("%s is %s, by a report of %s", cell.Name, status.Capacity, status.ReportedAt)
		}
	}
	return nil
}

// request sends one request to a replica over a connection of its own; body is
// nil for a GET.
func request(ctx context.Context, replica *world.Server, path, bearer string, body []byte) (int, string, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(hub.Hub.ServerCABundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, replica.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

func post(t *testing.T, replica *world.Server, path, bearer string, body []byte) (int, string) {
	t.Helper()
	code, answer, err := request(t.Context(), replica, path, bearer, body)
	if err != nil {
		t.Fatal(err)
	}
	return code, answer
}

// metric is the sum of a replica's series of this name that have these labels,
// each written as name="value".
func metric(ctx context.Context, replica *world.Server, name string, labels ...string) (float64, error) {
	code, text, err := request(ctx, replica, "/metrics", "", nil)
	if err != nil {
		return 0, err
	}
	if code != http.StatusOK {
		return 0, fmt.Errorf("%s answered %d for its metrics", replica.Name(), code)
	}
	sum := 0.0
series:
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(line, label) {
				continue series
			}
		}
		fields := strings.Fields(line)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return 0, fmt.Errorf("%q: %w", line, err)
		}
		sum += value
	}
	return sum, nil
}

// count is metric for a test that can't go on without.
func count(t *testing.T, replica *world.Server, name string, labels ...string) float64 {
	t.Helper()
	value, err := metric(t.Context(), replica, name, labels...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
