package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/capacity"
)

// spec is a report of a cell of ten cores of which so many are requested.
func spec(sequence int64, observed time.Time, requested string) v1alpha1.CellCapacitySpec {
	return v1alpha1.CellCapacitySpec{
		Sequence: sequence, ObservedAt: metav1.NewMicroTime(observed), Nodes: 1,
		Allocatable: v1alpha1.ResourceList{"cpu": resource.MustParse("10"), "memory": resource.MustParse("10Gi"), "pods": resource.MustParse("100")},
		Requested:   v1alpha1.ResourceList{"cpu": resource.MustParse(requested)},
	}
}

func cores(cell string, millis int64, at time.Time) capacity.Reservation {
	return capacity.Reservation{Cell: cell, At: at, Amounts: capacity.Amounts{{Resource: corev1.ResourceCPU, Value: millis}}}
}

// network is the peers as a Relay sees them: it takes what is posted, in order,
// and answers as the test says.
type network struct {
	mu     sync.Mutex
	fails  map[string]error  // by URL
	names  map[string]string // the instance behind a URL; the URL itself where unset
	posted []string
	at     []time.Time
}

func (n *network) post(_ context.Context, url string, body []byte) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var b batch
	if err := json.Unmarshal(body, &b); err != nil {
		return "", err
	}
	var parts []string
	for _, r := range b.Reservations {
		parts = append(parts, fmt.Sprintf("reserve %s %s", r.Cell, cpu(r)))
	}
	for _, r := range b.Releases {
		parts = append(parts, fmt.Sprintf("release %s %s", r.Cell, cpu(r)))
	}
	for _, r := range b.Reports {
		parts = append(parts, fmt.Sprintf("report %s %d", r.Cell, r.Spec.Sequence))
	}
	n.posted = append(n.posted, url+" "+strings.Join(parts, ", "))
	n.at = append(n.at, time.Now())
	if err := n.fails[url]; err != nil {
		return "", err
	}
	if name := n.names[url]; name != "" {
		return name, nil
	}
	return url, nil
}

func cpu(r reservation) string {
	q := r.Amounts["cpu"]
	return q.String()
}

func (n *network) fail(url string, with error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fails = map[string]error{url: with}
}

// expect fails the test unless exactly this was posted since the last time.
func (n *network) expect(t *testing.T, want ...string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.Sort(n.posted)
	if diff := cmp.Diff(want, n.posted); diff != "" {
		t.Errorf("posted (-want +got):\n%s", diff)
	}
	n.posted, n.at = nil, nil
}

func counted(t *testing.T, m *Metrics, want string) {
	t.Helper()
	header := "# HELP cellcast_relay_messages_total Messages between replicas of the hub by direction (sent, received), kind (report, reservation, release) and result (ok, dropped, failed, refused).\n" +
		"# TYPE cellcast_relay_messages_total counter\n"
	if err := testutil.CollectAndCompare(m, strings.NewReader(header+want), "cellcast_relay_messages_total"); err != nil {
		t.Error(err)
	}
}

var errAway = errors.New("connection refused")
