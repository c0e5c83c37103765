package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	k8stesting "k8s.io/client-go/testing"

	"cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/agent/commitment"
	"cellcast.io/cellcast/pkg/agent/revoker"
)

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited 30 s in vain for %s", what)
		}
	}
}

func TestAgentReportsItsCellToTheHub(t *testing.T) {
	s := serve(t)
	cell := fake.NewClientset(node("a", "4"), pod("one", "a", "1500m"))
	agent, err := New(Config{
		Cell: "oslo", HubURL: s.url, HubCAFile: s.caFile, TokenFile: s.tokenFile,
		Interval: time.Hour, HealthAddress: "127.0.0.1:0",
		Client: cell, Leases: cell.CoordinationV1(), Namespace: "cellcast-system", Identity: "first",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	eventually(t, "the first report", func() bool { return len(s.taken()) == 1 })

	got := s.taken()[0].Spec
	want := v1alpha1.CellCapacitySpec{
		Sequence:    got.ObservedAt.UnixNano(), // microseconds on the wire
		ObservedAt:  got.ObservedAt,
		Nodes:       1,
		Allocatable: v1alpha1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")},
		Requested:   v1alpha1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("0"), "pods": resource.MustParse("1")},
	}
	got.Sequence = got.Sequence / 1000 * 1000
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if age := time.Since(got.ObservedAt.Time); age < 0 || age > time.Minute {
		t.Errorf("the report was observed %s ago", age)
	}

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v, want nothing", err)
	}
}

// A list that is streamed comes over an open watch: until its end is marked,
// the view is in touch and yet doesn't know the whole cell.
func TestAgentReportsNothingUntilTheWholeCellWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, pods := watch.NewFake(), watch.NewFake()
		stream := func(w watch.Interface) source {
			return source{watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return w, nil }}
		}
		nodeInformer, err := newInformer(nil, &corev1.Node{}, stream(nodes), commitment.OfNode)
		if err != nil {
			t.Fatal(err)
		}
		podInformer, err := newInformer(nil, &corev1.Pod{}, stream(pods), commitment.OfPod)
		if err != nil {
			t.Fatal(err)
		}
		hub := &fakeHub{cell: "oslo"}
		idle, err := revoker.New(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := &Agent{view: &view{nodes: nodeInformer, pods: podInformer}, revoker: idle, reporter: newReporter(hub, nil)}
		a.reporter.total = a.view.total
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()

		end := metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
		nodes.Add(node("a", "4"))
		nodes.Action(watch.Bookmark, &corev1.Node{ObjectMeta: end})
		pods.Add(pod("one", "a", "1"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := hub.attempted(); len(got) != 0 {
			t.Errorf("the hub was told %d times of a cell that was read in part", len(got))
		}

		pods.Add(pod("two", "a", "2"))
		pods.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: end})
		time.Sleep(time.Second)
		synctest.Wait()
		got := hub.taken()
		if len(got) != 1 || cpuOf(got[0].Spec.Requested) != "3" {
			t.Errorf("once it was read, the hub took %v, want one report of 3 cpu", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

func TestAgentReportsWhereItEndsCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		trouble error // of listing Secrets
		want    []string
		after   time.Duration // of the first report
	}{
		"names the namespaces that it can read":             {nil, []string{"cd", "ci"}, time.Second},
		"reports the capacity alone where it can read none": {errors.New("forbidden"), nil, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scheme := metadatafake.NewTestScheme()
				if err := metav1.AddMetaToScheme(scheme); err != nil {
					t.Fatal(err)
				}
				secrets := metadatafake.NewSimpleMetadataClient(scheme)
				secrets.PrependReactor("list", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
					return test.trouble != nil, nil, test.trouble
				})
				a, err := New(Config{Client: fake.NewClientset(node("a", "4")), Metadata: secrets,
					RevocableNamespaces: []string{"ci", "cd"}, Interval: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				hub := &fakeHub{}
				a.reporter.hub = hub
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- a.Run(ctx) }()
				time.Sleep(test.after)
				synctest.Wait()

				reports := hub.taken()
				if len(reports) != 1 || reports[0].Spec.Nodes != 1 {
					t.Fatalf("after %s the hub took %v, want one report", test.after, reports)
				}
				if diff := cmp.Diff(test.want, reports[0].Spec.RevocableNamespaces); diff != "" {
					t.Errorf("namespaces (-want +got):\n%s", diff)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Errorf("Run ended with %v", err)
				}
			})
		})
	}
}

func TestAgentEndsWhenItCannotServeItsProbes(t *testing.T) {
	agent, err := New(Config{Client: fake.NewClientset(), HealthAddress: "256.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	err = agent.Run(t.Context())
	if err == nil || errors.As(err, new(LeaseLostError)) {
		t.Errorf("Run ended with %v, want the listener's error", err)
	}
}

func cpuOf(list v1alpha1.ResourceList) string {
	cpu := list["cpu"]
	return cpu.String()
}
