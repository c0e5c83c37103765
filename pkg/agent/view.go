package agent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"cellcast.io/cellcast/pkg/agent/commitment"
	"cellcast.io/cellcast/pkg/agent/contact"
)

// boundAndRunning selects the pods that hold something of a node. Waiting and
// finished pods, which in a cell of jobs outnumber the rest, never leave the
// API server.
const boundAndRunning = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

// maxBlind is how long the view may be without a watch before its figures are
// too old to report. A watch that ends in the normal way is back within a
// second or two; one whose connection is dead ends after 45 seconds at most, so
// what is reported is never older than a minute.
const maxBlind = 15 * time.Second

// view is the agent's picture of its cell, kept current by watches.
type view struct {
	nodes *informer[commitment.Node]
	pods  *informer[commitment.Pod]
}

func newView(client kubernetes.Interface) (*view, error) {
	nodes, err := newInformer(client, &corev1.Node{}, source{
		resource: "nodes",
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Nodes().List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Nodes().Watch(ctx, o)
		},
	}, commitment.OfNode)
	if err != nil {
		return nil, fmt.Errorf("preparing the informer of nodes: %w", err)
	}
	pods, err := newInformer(client, &corev1.Pod{}, source{
		resource: "pods",
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = boundAndRunning
			return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = boundAndRunning
			return client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, o)
		},
	}, commitment.OfPod)
	if err != nil {
		return nil, fmt.Errorf("preparing the informer of pods: %w", err)
	}
	return &view{nodes: nodes, pods: pods}, nil
}

// run keeps the view current until ctx is done.
func (v *view) run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.nodes.RunWithContext(ctx)
	}()
	v.pods.RunWithContext(ctx)
	<-done
}

// waitForSync returns when the whole cell was read once, and false when ctx
// was done before.
func (v *view) waitForSync(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), v.nodes.HasSynced, v.pods.HasSynced)
}

// ready says what hasn't been read yet, if anything.
func (v *view) ready() error {
	switch {
	case !v.nodes.HasSynced():
		return fmt.Errorf("the nodes of the cell haven't been read yet")
	case !v.pods.HasSynced():
		return fmt.Errorf("the pods of the cell haven't been read yet")
	default:
		return nil
	}
}

// total counts the cell's commitment. It's a blindError when the view has been
// out of touch with the API server for longer than maxBlind: figures that
// can't be told from old ones must not be reported as new.
func (v *view) total(now time.Time) (commitment.Total, error) {
	for _, c := range []*contact.Contact{v.nodes.contact, v.pods.contact} {
		if lost := c.LostFor(now); lost > maxBlind {
			return commitment.Total{}, blindError{lost}
		}
	}
	return commitment.Sum(v.nodes.figures(), v.pods.figures()), nil
}

// blindError says for how long the view has been out of touch.
type blindError struct{ lost time.Duration }

func (e blindError) Error() string {
	return fmt.Sprintf("no watch on the cell for %s: its figures are too old to report", e.lost.Round(time.Second))
}
