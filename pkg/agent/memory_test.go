package agent

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"cellcast.io/cellcast/pkg/agent/commitment"
)

// BenchmarkPodMemory measures the heap that one pod keeps in the cache of an
// informer, whole and counted. The pods are decoded, as those off the wire are.
func BenchmarkPodMemory(b *testing.B) {
	const pods = 10_000
	for name, keep := range map[string]func(*corev1.Pod) any{
		"whole":   func(p *corev1.Pod) any { return p },
		"counted": func(p *corev1.Pod) any { return reduce(p, commitment.OfPod) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				for i := range pods {
					if err := store.Add(keep(decoded(b, i))); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(heap()-before)/pods, "B/pod")
				runtime.KeepAlive(store)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// decoded is a pod as a Deployment of three containers makes it.
func decoded(b *testing.B, n int) *corev1.Pod {
	in := pod(fmt.Sprintf("checkout-7d9f8b6c5-%05d", n), fmt.Sprintf("ip-10-0-%d-17.eu-north-1.compute.internal", n%200), "250m")
	in.UID = types.UID(fmt.Sprintf("9a6ff1d2-3c55-4a52-8f6d-%012d", n))
	in.ResourceVersion = fmt.Sprint(100_000_000 + n)
	in.Labels = map[string]string{"app": "checkout", "pod-template-hash": "7d9f8b6c5", "team": "shop"}
	in.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat("f", 2000))}}
	in.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("512Mi")
	for i := range 20 {
		in.Spec.Containers[0].Env = append(in.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", i), Value: "a value of the usual length"})
	}
	in.Spec.Containers = append(in.Spec.Containers, *in.Spec.Containers[0].DeepCopy(), *in.Spec.Containers[0].DeepCopy())
	in.Spec.Volumes = []corev1.Volume{{Name: "config"}, {Name: "kube-api-access"}}
	for range in.Spec.Containers {
		in.Status.ContainerStatuses = append(in.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: "c", Image: "registry.example.com/shop/checkout:1.2.3", ImageID: "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945",
			AllocatedResources: in.Spec.Containers[0].Resources.Requests,
		})
	}
	wire, err := in.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	out := &corev1.Pod{}
	if err := out.Unmarshal(wire); err != nil {
		b.Fatal(err)
	}
	return out
}
