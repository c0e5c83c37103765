package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/test/world"
)

// One pipeline floods a replica that has few seats, by what the shipped
// FlowSchemas say. It's told to come back later, in words that the client reads
// as RateLimited; another pipeline doesn't notice, and neither do reporters.
func TestWhoFloodsWaitsBehindItself(t *testing.T) {
	require(t)
	quiet, loud := unique(t)+"-quiet", unique(t)+"-loud"
	policy(t, quiet, nil)
	policy(t, loud, nil)
	// 12 seats, 4 of them for placements: by the 600 that a hub has, nobody on two
	// cores could flood it.
	server, client := replica(t, quiet, world.ServerOptions{Args: []string{"--max-requests-inflight=8", "--max-mutating-requests-inflight=4"}})
	matched(t, server, quiet)

	flood := start(t, server, loud)
	defer flood.end()
	eventually(t, "the flood is refused", func(context.Context) error { return flood.err(1) })

	bearers, slowest := map[string]string{}, time.Duration(0)
	for _, cell := range hub.Cells {
		bearers[cell.Name] = reporter(t, cell.Name)
	}
	for range 30 {
		began := time.Now()
		if _, err := place(t.Context(), client, ask("payments/api")); err != nil {
			t.Errorf("the quiet pipeline: %v", err)
		}
		slowest = max(slowest, time.Since(began))
		// No agent reports to this replica, and reports count for 90 s.
		for cell, bearer := range bearers {
			if code, answer := postTo(t, server.URL, capacityOf(cell), bearer, report(t, nil)); code != http.StatusCreated {
				t.Errorf("the reporter of %s: %d %s", cell, code, answer)
			}
		}
		time.Sleep(100 * time.Millisecond) // its pace
	}
	flood.end()
	if err := flood.err(30); err != nil {
		t.Error(err)
	}
	t.Logf("the flood: %d placed, %d refused; the slowest quiet placement took %s", flood.placed, flood.refused, slowest.Round(time.Millisecond))
}

// matched tells that placements are sorted by our FlowSchema and by no other.
func matched(t *testing.T, server *world.Server, repositoryID string) {
	t.Helper()
	admin, err := kubernetes.NewForConfig(hub.Hub.Admin.Config())
	if err != nil {
		t.Fatal(err)
	}
	schema, err := admin.FlowcontrolV1().FlowSchemas().Get(t.Context(), "cellcast-placements", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := hub.Token(repositoryID, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(hub.Direct(token))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+placementsPath+"?dryRun=All", bytes.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID); response.StatusCode != http.StatusCreated || got != string(schema.UID) {
		t.Fatalf("got %s by FlowSchema %q, want cellcast-placements, %q", response.Status, got, schema.UID)
	}
}

// flood is a pipeline that asks for 200 credentials at a time, for a minute at most.
type flood struct {
	stopped atomic.Bool
	workers sync.WaitGroup

	mu              sync.Mutex
	placed, refused int
	wrong           error
}

// start begins a flood. 200 are more than the 4 seats and the 6 queues of 20 that
// a caller has, and a mint keeps its seat while the cell works: the queues are full
// all the time, and who shared them would be refused too.
func start(t *testing.T, server *world.Server, repositoryID string) *flood {
	t.Helper()
	token, err := hub.Token(repositoryID, nil)
	if err != nil {
		t.Fatal(err)
	}
	config := hub.Direct(token)
	config.Host = server.URL
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	f := &flood{}
	until := time.Now().Add(time.Minute)
	for range 200 {
		f.workers.Go(func() {
			for !f.stopped.Load() && time.Now().Before(until) {
				err := client.CellcastV1alpha1().RESTClient().Post().Resource("placements").
					Body(ask("payments/api")).MaxRetries(0).Do(t.Context()).Error()
				f.count(err)
				if err != nil {
					time.Sleep(100 * time.Millisecond) // less than it's told, so that it stays a flood
				}
			}
		})
	}
	return f
}

// end ends it and waits for the answers that are due.
func (f *flood) end() {
	f.stopped.Store(true)
	f.workers.Wait()
}

func (f *flood) count(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	refused, is := refusal.FromStatus(err)
	switch {
	case err == nil:
		f.placed++
	case is && refused.Code == refusal.RateLimited && refused.RetryAfter > 0:
		f.refused++
	default:
		f.wrong = fmt.Errorf("the flood: %w", err)
	}
}

// err says what isn't as it should be: that so many were refused, that some were
// placed, and that there was nothing else.
func (f *flood) err(refused int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wrong == nil && (f.placed == 0 || f.refused < refused) {
		return fmt.Errorf("the flood: %d placed, %d refused", f.placed, f.refused)
	}
	return f.wrong
}
