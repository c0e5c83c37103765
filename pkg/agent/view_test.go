package agent

import (
	"context"
	"net/http"
	"reflect"
	"sync"
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
	k8stesting "k8s.io/client-go/testing"

	"cellcast.io/cellcast/pkg/agent/commitment"
)

func node(name, cpu string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func pod(name, node, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
		}}},
	}
}

// watching runs a view of the cell until the test ends.
func watching(t *testing.T, cell *fake.Clientset) *view {
	t.Helper()
	v, err := newView(cell)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return v
}

// cpu is the number of nodes, and requested and allocatable cpu.
func cpu(t *testing.T, v *view) [3]string {
	t.Helper()
	synctest.Wait()
	total, err := v.total(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return [3]string{string(rune('0' + total.Nodes)), total.Requested.Cpu().String(), total.Allocatable.Cpu().String()}
}

func TestViewFollowsTheCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := fake.NewClientset(node("a", "4"), node("b", "8"), pod("one", "a", "1"), pod("two", "b", "500m"))
		v := watching(t, cell)
		if !v.waitForSync(t.Context()) {
			t.Fatal("no sync")
		}
		nodes, pods := cell.CoreV1().Nodes(), cell.CoreV1().Pods("shop")
		for _, step := range []struct {
			what   string
			change func() error
			want   [3]string
		}{
			{"what is there at first", func() error { return nil }, [3]string{"2", "1500m", "12"}},
			{"a pod is bound", func() error {
				_, err := pods.Create(t.Context(), pod("three", "b", "2"), metav1.CreateOptions{})
				return err
			}, [3]string{"2", "3500m", "12"}},
			{"a pod is resized", func() error {
				_, err := pods.Update(t.Context(), pod("three", "b", "3"), metav1.UpdateOptions{})
				return err
			}, [3]string{"2", "4500m", "12"}},
			{"a pod goes", func() error {
				return pods.Delete(t.Context(), "one", metav1.DeleteOptions{})
			}, [3]string{"2", "3500m", "12"}},
			{"a node is cordoned", func() error {
				cordoned := node("b", "8")
				cordoned.Spec.Unschedulable = true
				_, err := nodes.Update(t.Context(), cordoned, metav1.UpdateOptions{})
				return err
			}, [3]string{"1", "0", "4"}},
			{"a node goes", func() error {
				return nodes.Delete(t.Context(), "a", metav1.DeleteOptions{})
			}, [3]string{"0", "0", "0"}},
		} {
			if err := step.change(); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			if diff := cmp.Diff(step.want, cpu(t, v)); diff != "" {
				t.Errorf("%s: nodes, requested, allocatable (-want +got):\n%s", step.what, diff)
			}
		}
	})
}

func TestViewAsksForBoundAndRunningPodsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell := fake.NewClientset()
		watching(t, cell)
		synctest.Wait()
		got := map[string]string{}
		for _, action := range cell.Actions() {
			key := action.GetVerb() + " " + action.GetResource().Resource
			switch action := action.(type) {
			case k8stesting.ListAction:
				got[key] = action.GetListRestrictions().Fields.String()
			case k8stesting.WatchAction:
				got[key] = action.GetWatchRestrictions().Fields.String()
			}
		}
		want := map[string]string{
			"list nodes":  "",
			"watch nodes": "",
			"list pods":   "spec.nodeName!=,status.phase!=Failed,status.phase!=Succeeded",
			"watch pods":  "spec.nodeName!=,status.phase!=Failed,status.phase!=Succeeded",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("field selectors (-want +got):\n%s", diff)
		}
	})
}

func TestViewKeepsNothingOfAPodButItsFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secretive := pod("one", "a", "1")
		secretive.ResourceVersion = "5"
		secretive.Annotations = map[string]string{"note": "long"}
		secretive.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		secretive.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "swordfish"}}
		v := watching(t, fake.NewClientset(secretive))
		synctest.Wait()
		want := []any{&counted[commitment.Pod]{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one", ResourceVersion: "5"},
			figures:    commitment.OfPod(secretive),
		}}
		got := v.pods.GetStore().List()
		if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("store (-want +got):\n%s", diff)
		}
	})
}

func TestViewIsBlindOnceItsWatchIsLost(t *testing.T) {
	for _, kind := range []string{"nodes", "pods"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cell, api := fake.NewClientset(node("a", "4")), &unreliable{}
				cell.PrependReactor("list", kind, api.list)
				cell.PrependWatchReactor(kind, api.watch)
				v := watching(t, cell)
				synctest.Wait()

				time.Sleep(time.Hour)
				if _, err := v.total(time.Now()); err != nil {
					t.Fatalf("an hour without news under an open watch: %v", err)
				}
				api.fail()
				time.Sleep(15 * time.Second)
				if _, err := v.total(time.Now()); err != nil {
					t.Errorf("15 s after the watch was lost: %v", err)
				}
				time.Sleep(time.Second)
				_, err := v.total(time.Now())
				if want := "no watch on the cell for 16s: its figures are too old to report"; err == nil || err.Error() != want {
					t.Errorf("16 s after the watch was lost: %v, want %q", err, want)
				}
				api.recover()
				time.Sleep(2 * time.Minute) // a reflector's longest backoff is one
				if _, err := v.total(time.Now()); err != nil {
					t.Errorf("after the API server came back: %v", err)
				}
			})
		})
	}
}

func TestViewIsInTouchOnceItHasListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell, api := fake.NewClientset(node("a", "4"), pod("one", "a", "1")), &unreliable{lost: true}
		cell.PrependWatchReactor("pods", api.watch)
		v := watching(t, cell)
		if diff := cmp.Diff([3]string{"1", "1", "4"}, cpu(t, v)); diff != "" {
			t.Errorf("listed and not watched: nodes, requested, allocatable (-want +got):\n%s", diff)
		}
	})
}

// unreliable is an API server of which one kind can be lost and come back. It
// answers nothing itself while all is well, but for watches, which it can end.
type unreliable struct {
	mu   sync.Mutex
	lost bool
	open []*watch.FakeWatcher
}

func (u *unreliable) list(k8stesting.Action) (bool, runtime.Object, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lost {
		return true, nil, answer(http.StatusForbidden, "no longer allowed", 0)
	}
	return false, nil, nil
}

func (u *unreliable) watch(k8stesting.Action) (bool, watch.Interface, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lost {
		return true, nil, answer(http.StatusForbidden, "no longer allowed", 0)
	}
	w := watch.NewFake()
	u.open = append(u.open, w)
	return true, w, nil
}

func (u *unreliable) fail() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lost = true
	for _, w := range u.open {
		w.Stop()
	}
}

func (u *unreliable) recover() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lost = false
}

func TestViewSaysWhatItHasNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell, api := fake.NewClientset(), &unreliable{lost: true}
		cell.PrependReactor("list", "pods", api.list)
		v := watching(t, cell)
		if err := v.ready(); err == nil || err.Error() != "the nodes of the cell haven't been read yet" {
			t.Errorf("before anything was read: %v", err)
		}
		time.Sleep(time.Minute)
		if err := v.ready(); err == nil || err.Error() != "the pods of the cell haven't been read yet" {
			t.Errorf("while pods may not be listed: %v", err)
		}
		api.recover()
		time.Sleep(2 * time.Minute)
		if err := v.ready(); err != nil {
			t.Errorf("once all was read: %v", err)
		}
	})
}
