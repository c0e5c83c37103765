package world_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"cellcast.io/cellcast/test/world"
	"cellcast.io/cellcast/test/world/worldtest"
)

func TestNodeDiesWithItsStarter(t *testing.T) {
	worldtest.RequireNode(t)
	before, dir := machine(t), t.TempDir()
	t.Setenv(starterNode, "yes")
	t.Cleanup(func() { _, _ = world.StopDetached(context.Background(), dir) })
	program := start(t, dir, "")
	left := running(t, dir)
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	left.ended(t)

	// Only empty control groups can be left, and the next to look removes them.
	if _, err := world.StopDetached(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if groups := left.groups(t); len(groups) > 0 {
		t.Errorf("control groups are left: %v", groups)
	}
	if diff := cmp.Diff(before, machine(t)); diff != "" {
		t.Errorf("the machine (-before +after):\n%s", diff)
	}
}

func TestDetachedNodeStaysUntilStopDetached(t *testing.T) {
	worldtest.RequireNode(t)
	before, dir := machine(t), t.TempDir()
	t.Setenv(starterNode, "yes")
	t.Cleanup(func() { _, _ = world.StopDetached(context.Background(), dir) })
	if err := start(t, dir, "yes").Wait(); err != nil {
		t.Fatal(err)
	}
	left := running(t, dir)
	ended, err := world.StopDetached(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a-kube-scheduler", "a-kubelet", "a-containerd", "a-kube-controller-manager", "a-kube-apiserver", "hub-kube-apiserver", "a-node", "etcd"}
	if diff := cmp.Diff(want, ended); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	if groups := left.groups(t); len(groups) > 0 {
		t.Errorf("control groups are left: %v", groups)
	}
	left.ended(t)
	if diff := cmp.Diff(before, machine(t)); diff != "" {
		t.Errorf("the machine (-before +after):\n%s", diff)
	}
}

// running waits until a pod runs in the world in dir, and returns what its node
// has on the machine.
func running(t *testing.T, dir string) traces {
	t.Helper()
	var client kubernetes.Interface
	poll(t, "the cell answers", func() bool {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "a", "admin.kubeconfig"))
		if err != nil {
			return false
		}
		client = kubernetes.NewForConfigOrDie(config)
		_, err = client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	no := false
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "waiting"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &no,
			Containers:                   []corev1.Container{{Name: "main", Image: world.PauseImage}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var address string
	poll(t, "a pod runs", func() bool {
		pod, err := client.CoreV1().Pods("default").Get(t.Context(), "waiting", metav1.GetOptions{})
		if err != nil || pod.Status.Phase != corev1.PodRunning {
			return false
		}
		address = pod.Status.HostIP
		return true
	})
	for _, r := range recorded(t, dir) {
		if r["name"] == "a-containerd" {
			return tracesOf(t, int(r["pid"].(float64)), address)
		}
	}
	t.Fatalf("no containerd is recorded in %s", dir)
	return traces{}
}
