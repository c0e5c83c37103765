// Package events shows on a Cluster who has been deploying to it: Kubernetes
// Events, made from the audit records, for an operator who is looking at a cell.
//
// This view is lossy by design, and the trail is not: Events are written behind
// the requests and never hold one up; what doesn't fit is dropped and counted;
// and client-go's own correlator joins what is alike and holds back a flood.
package events

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
)

const (
	// maxWaiting is the most Events that wait to be written.
	maxWaiting = 256
	// patience bounds one write.
	patience = 5 * time.Second

	component = "cellcast-hub"
)

// What becomes of an Event.
const (
	resultWritten    = "written"
	resultAggregated = "aggregated" // held back by the spam filter
	resultDropped    = "dropped"    // the queue was full
	resultFailed     = "failed"     // the API server didn't take it
)

// Options are what the Events are about and who writes them.
type Options struct {
	// Client writes Events of the namespace "default", to which those of
	// cluster-scoped objects belong.
	Client typedcorev1.EventsGetter
	// Cluster returns the row of a cell.
	Cluster func(name string) (*registryv1alpha1.Cluster, bool)
	// Instance is the name of this replica.
	Instance string
	// Clock tells the time; the real one by default.
	Clock clock.PassiveClock
}

// Events is a Sink that makes Events on the Clusters of the records.
type Events struct {
	options    Options
	client     typedcorev1.EventInterface
	correlator *record.EventCorrelator
	waiting    chan *corev1.Event

	written, aggregated, dropped, failed atomic.Uint64
}

var _ audit.Sink = &Events{}

// New returns Events that wait until Run writes them.
func New(o Options) *Events {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Events{
		options: o,
		client:  o.Client.Events(metav1.NamespaceDefault),
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			Clock: o.Clock,
			// Per cell and reason, so that placements don't use up what a failed
			// mint needs to be seen.
			SpamKeyFunc: func(e *corev1.Event) string { return string(e.InvolvedObject.UID) + "/" + e.Reason },
		}),
		waiting: make(chan *corev1.Event, maxWaiting),
	}
}

// Write makes an Event of a record that has something to say about a cell. It
// doesn't wait, and its error is always nil: nobody may rely on Events.
func (e *Events) Write(r audit.Record) error {
	said, ok := describe(r)
	if !ok {
		return nil
	}
	row, ok := e.options.Cluster(r.Cell)
	if !ok {
		return nil
	}
	select {
	case e.waiting <- e.event(row, said):
	default:
		e.dropped.Add(1)
	}
	return nil
}

// Results is the number of Events by what became of them.
func (e *Events) Results() map[string]uint64 {
	return map[string]uint64{
		resultWritten:    e.written.Load(),
		resultAggregated: e.aggregated.Load(),
		resultDropped:    e.dropped.Load(),
		resultFailed:     e.failed.Load(),
	}
}

// Run writes Events until ctx is done. What still waits then is given up.
func (e *Events) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-e.waiting:
			e.send(ctx, event)
		}
	}
}

func (e *Events) send(ctx context.Context, event *corev1.Event) {
	result, err := e.correlator.EventCorrelate(event)
	if err == nil && result.Skip {
		e.aggregated.Add(1)
		return
	}
	if err == nil {
		err = e.write(ctx, result.Event, result.Patch)
	}
	if err != nil {
		e.failed.Add(1)
		klog.FromContext(ctx).V(2).Info("An Event on a Cluster could not be written", "cluster", event.InvolvedObject.Name, "reason", event.Reason, "err", err)
		return
	}
	e.written.Add(1)
}

// write patches the Event that the new one counts up, and makes one where there
// is none, or none any more: Events end after an hour.
func (e *Events) write(ctx context.Context, event *corev1.Event, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if event.Count > 1 {
		patched, err := e.client.Patch(ctx, event.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err == nil {
			e.correlator.UpdateState(patched)
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("patch the Event: %w", err)
		}
	}
	event.ResourceVersion = ""
	created, err := e.client.Create(ctx, event, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the Event: %w", err)
	}
	e.correlator.UpdateState(created)
	return nil
}

func (e *Events) event(row *registryv1alpha1.Cluster, said description) *corev1.Event {
	now := metav1.NewTime(e.options.Clock.Now())
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("%s.%x", row.Name, now.UnixNano()),
			Namespace: metav1.NamespaceDefault,
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: registryv1alpha1.SchemeGroupVersion.String(), Kind: "Cluster", Name: row.Name, UID: row.UID,
		},
		Type: said.kind, Reason: said.reason, Message: said.message,
		Source:              corev1.EventSource{Component: component, Host: e.options.Instance},
		ReportingController: component, ReportingInstance: e.options.Instance,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}
