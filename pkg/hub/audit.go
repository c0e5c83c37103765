package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/audit/patient"
	"cellcast.io/cellcast/pkg/events"
	"cellcast.io/cellcast/pkg/metrics"
)

// newAudit returns where audit records go: first the trail, which alone decides
// whether a record was written, then the two views of it, the counters and the
// Events on Clusters. It registers all of the hub's own metrics. The Events are
// written once their Run is called.
func (s *Server) newAudit(out *os.File) (audit.Sink, *events.Events, error) {
	if err := lasting(out); err != nil {
		return nil, nil, err
	}
	trail := audit.NewWriter(patient.NewWriter(out), func(err error) { klog.ErrorS(err, "An audit record was lost") })
	onClusters := events.New(events.Options{
		Client:   s.config.HubClient.CoreV1(),
		Cluster:  func(name string) (*registryv1alpha1.Cluster, bool) { return s.registry.View().Cluster(name) },
		Instance: s.instance(),
	})
	s.metrics.MustRegister(
		metrics.Cells(s.cells),
		metrics.NewWarm(func() bool { return s.warm(s.clock.Now()) }),
		metrics.NewLost(trail.Lost),
		metrics.NewEvents(onClusters.Results),
	)
	return audit.Tee{trail, metrics.NewRecords(s.metrics), onClusters}, onClusters, nil
}

// lasting refuses an output that keeps nothing. A standard output that was
// closed before the hub began is the null device to it: Go opens that in its
// place.
func lasting(out *os.File) error {
	is, err := out.Stat()
	if err != nil {
		return fmt.Errorf("the audit trail can't be written: %w", err)
	}
	null, err := os.Stat(os.DevNull)
	if err == nil && os.SameFile(is, null) {
		return errors.New("standard output is closed or " + os.DevNull + ", and the audit trail goes there: give the hub one that is kept")
	}
	return nil
}

// instance is the name of this replica.
func (s *Server) instance() string {
	if s.config.Pod.Name != "" {
		return s.config.Pod.Name
	}
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	return host
}

// cells is what the metrics tell of each registered cell. The rows are those of
// the cache and not of the view, which doesn't follow their status.
func (s *Server) cells() []metrics.Cell {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var rows registryv1alpha1.ClusterList
	if err := s.manager.GetCache().List(ctx, &rows, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache hasn't begun
	}
	now := s.clock.Now()
	var all []metrics.Cell
	for i := range rows.Items {
		row := &rows.Items[i]
		d, ok := s.index.Describe(row.Name, now)
		if !ok {
			continue
		}
		cell := metrics.Cell{Name: row.Name, State: string(row.Spec.State), Health: string(d.Health), Conditions: map[string]bool{}}
		if !d.ReceivedAt.IsZero() {
			cell.Reported, cell.ReportAge = true, now.Sub(d.ReceivedAt)
		}
		for _, c := range row.Status.Conditions {
			cell.Conditions[c.Type] = c.Status == metav1.ConditionTrue
		}
		all = append(all, cell)
	}
	return all
}
