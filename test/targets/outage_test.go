package targets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// With its API away a target is Unreachable, and Ready again only by a probe. One
// that is unregistered meanwhile doesn't wait for it.
func TestAnAPIServerThatGoesAwayAndComesBack(t *testing.T) {
	requireNode(t)
	b, g := ready(t), newGate(t) // which stays closed: a canary is out all the time
	left := b.ownedBy("left", registryv1alpha1.TargetOwner{})
	left.Spec.IngestURL = g.url
	must(b.hub.RegistryV1alpha1().ClusterTargets(b.name).Create(t.Context(), left, metav1.CreateOptions{}))(t)
	canary := b.canary("left")
	states, began := b.watched(), time.Now()
	// It takes connections and never answers, which is worse than to be away.
	if err := syscall.Kill(acme().APIServer.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	back := false
	t.Cleanup(func() {
		if !back {
			_ = acme().APIServer.Kill()
			_ = acme().APIServer.Start(context.Background())
		}
	})
	took := b.leaves("left")
	t.Logf("with its API silent and a canary out, a target was let go of in %s", took.Round(100*time.Millisecond))
	if took > leavesWithin {
		t.Errorf("with its API silent a target is deleted after %s", took)
	}
	if err := acme().APIServer.Kill(); err != nil {
		t.Fatal(err)
	}
	row := b.awaits(registryv1alpha1.TargetUnreachable)
	t.Logf("Unreachable after %s", time.Since(began).Round(100*time.Millisecond))
	if want := "Reachable: The target's API couldn't be connected to, several times in a row. It's tried again, and probed when it answers."; row.Status.Failing != want {
		t.Errorf("it says %q, want %q", row.Status.Failing, want)
	}
	if meta.IsStatusConditionTrue(row.Status.Conditions, registryv1alpha1.ConditionReachable) || !meta.IsStatusConditionTrue(row.Status.Conditions, registryv1alpha1.ConditionCredentialAvailable) {
		t.Errorf("the conditions are %+v", row.Status.Conditions)
	}
	back = true
	if err := acme().APIServer.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	b.awaitsRun(registryv1alpha1.ProbeRecovered, registryv1alpha1.TargetReady)
	t.Logf("Ready %s after it was back", time.Since(began).Round(100*time.Millisecond))
	want := []registryv1alpha1.TargetState{registryv1alpha1.TargetReady, registryv1alpha1.TargetUnreachable, registryv1alpha1.TargetReady}
	if got := states(); !slices.Equal(got, want) && !slices.Equal(got, want[1:]) {
		t.Errorf("it was %v, want %v", got, want)
	}
	// That of the target which is let go of can't be deleted, and ends by itself.
	if err := b.target.CoreV1().Pods(b.name).Delete(t.Context(), canary.PodName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	b.noCanary()
}

// leavesWithin is how long the deletion of a row may take whatever is the matter
// with its target: five seconds, and the rest for a slow machine. A canary that is
// waited for has 90.
const leavesWithin = 30 * time.Second

// leaves deletes a row of the namespace and returns how long that took.
func (b *brought) leaves(name string) time.Duration {
	b.t.Helper()
	began := time.Now()
	rows := b.hub.RegistryV1alpha1().ClusterTargets(b.name)
	if err := rows.Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
	patiently(b.t, time.Minute, "row "+name+" is gone", func(ctx context.Context) error {
		row, err := rows.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("it's there: %v", row.Finalizers), err)
	})
	return time.Since(began)
}

// gate stands before the hub's external listener and lets nobody through until
// it's opened.
type gate struct {
	url  string
	open atomic.Bool
}

func newGate(t *testing.T) *gate {
	t.Helper()
	listener := must(net.Listen("tcp", net.JoinHostPort(acme().Node.Address, "0")))(t)
	t.Cleanup(func() { _ = listener.Close() })
	g := &gate{url: "https://" + listener.Addr().String()}
	behind := must(url.Parse(hub.Hub.ExternalURL))(t).Host
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go g.pass(from, behind)
		}
	}()
	return g
}

func (g *gate) pass(from net.Conn, behind string) {
	defer from.Close()
	if !g.open.Load() {
		return
	}
	to, err := net.Dial("tcp", behind)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(to, from) }()
	_, _ = io.Copy(from, to)
}

// A hub that dies while a canary is out leaves it behind; the one that starts anew
// deletes it, and goes through the same run again with a canary of its own.
func TestAHubThatDiesInMidProbe(t *testing.T) {
	requireNode(t)
	b, g := bring(t), newGate(t)
	b.keep(b.kubeconfig(b.token))
	b.register(func(spec *registryv1alpha1.ClusterTargetSpec) { spec.IngestURL = g.url })
	old := b.canary(b.name)
	run := b.row().Status.Run.ID
	patiently(t, time.Minute, "the canary runs", func(ctx context.Context) error {
		pod, err := b.target.CoreV1().Pods(b.name).Get(ctx, old.PodName, metav1.GetOptions{})
		if err == nil && (pod.Status.Phase != corev1.PodRunning || pod.UID != old.PodUID) {
			err = fmt.Errorf("it's %s", pod.Status.Phase)
		}
		return err
	})
	if err := hub.Hub.Server.Kill(); err != nil {
		t.Fatal(err)
	}
	pod, err := b.target.CoreV1().Pods(b.name).Get(t.Context(), old.PodName, metav1.GetOptions{})
	if err != nil || pod.DeletionTimestamp != nil {
		t.Errorf("the canary isn't left behind, so that the test shows nothing: %v", err)
	}
	if err := hub.Hub.Server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	patiently(t, 2*time.Minute, "another canary is out", func(ctx context.Context) error {
		pods, err := b.target.CoreV1().Pods(b.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || pods.Items[0].UID == old.PodUID {
			return errors.New("it isn't")
		}
		return nil
	})
	g.open.Store(true) // not before: the old canary mustn't be the one that gets through
	row := b.first()
	inState(t, row, registryv1alpha1.TargetReady)
	if got := row.Status.Run; got.ID != run || got.Reason != registryv1alpha1.ProbeResumed || got.Canary.PodUID == old.PodUID || got.Canary.DeletedAt == nil {
		t.Errorf("the run is %+v with the canary %+v; it was %s", got, got.Canary, run)
	}
	b.noCanary()
}
