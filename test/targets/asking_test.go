package targets

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/world"
)

// lookingEvery is the pause between two looks of a test that waits for a probe,
// of which there may be many at once.
const lookingEvery = 200 * time.Millisecond

// patiently is eventually with a limit of its own.
func patiently(t *testing.T, within time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), lookingEvery, within, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if last == nil || ctx.Err() == nil { // else it says no more than that the time is over
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v; last: %v", what, err, last)
	}
}

// userOf is somebody's clients at the hub.
func userOf(t *testing.T, name string, groups ...string) (world.User, versioned.Interface) {
	t.Helper()
	user := must(hub.Hub.User(name, groups...))(t)
	return user, must(versioned.NewForConfig(user.Config()))(t)
}

// asked is a question about a target as it is sent.
func asked(client versioned.Interface, namespace, name, subresource string, question runtime.Object) *rest.Request {
	return client.CellcastV1alpha1().RESTClient().Post().
		Namespace(namespace).Resource("clustertargets").Name(name).SubResource(subresource).Body(question).MaxRetries(0)
}

// asksForAProbe asks as somebody.
func (b *brought) asksForAProbe(ctx context.Context, client versioned.Interface) (cellcastv1alpha1.TargetProbeStatus, error) {
	answer := &cellcastv1alpha1.TargetProbe{}
	err := asked(client, b.name, b.name, "probe", &cellcastv1alpha1.TargetProbe{}).Do(ctx).Into(answer)
	return answer.Status, err
}

// probed asks for a probe as the owner, which begins after all that was done
// before, and returns the row once it has ended.
func (b *brought) probed() *registryv1alpha1.ClusterTarget {
	b.t.Helper()
	for {
		run, err := b.asksForAProbe(b.t.Context(), b.hub)
		if err != nil {
			b.t.Fatal(err)
		}
		row := b.ends(func(row *registryv1alpha1.ClusterTarget) error {
			if row.Status.Run.ID != run.Run {
				return fmt.Errorf("the run is %s, not %s", row.Status.Run.ID, run.Run)
			}
			return nil
		})
		if !run.Joined {
			return row
		}
	}
}

// first is the row once its present spec was probed.
func (b *brought) first() *registryv1alpha1.ClusterTarget {
	b.t.Helper()
	return b.ends(func(row *registryv1alpha1.ClusterTarget) error {
		if row.Status.ObservedGeneration != row.Generation || row.Status.Run.Generation != row.Generation {
			return errors.New("the status speaks of another spec")
		}
		return nil
	})
}

// longestRun is more than a run may take.
const longestRun = 5 * time.Minute

// ends is the row once the run that the check means has ended.
func (b *brought) ends(is func(*registryv1alpha1.ClusterTarget) error) (row *registryv1alpha1.ClusterTarget) {
	b.t.Helper()
	patiently(b.t, longestRun, "a run of target "+b.name+" has ended", func(ctx context.Context) error {
		var err error
		if row, err = b.hub.RegistryV1alpha1().ClusterTargets(b.name).Get(ctx, b.name, metav1.GetOptions{}); err != nil {
			return err
		}
		if row.Status.Run == nil || row.Status.Run.FinishedAt == nil {
			return fmt.Errorf("it's under way: %+v", row.Status.Run)
		}
		return is(row)
	})
	return row
}

// inState fails the test where the row is in another state.
func inState(t *testing.T, row *registryv1alpha1.ClusterTarget, want registryv1alpha1.TargetState) {
	t.Helper()
	if row.Status.State != want {
		t.Errorf("the target is %q, want %q: %s", row.Status.State, want, row.Status.Failing)
	}
}

// rekeys replaces the kubeconfig where the owner keeps it.
func (b *brought) rekeys(file []byte) {
	b.t.Helper()
	secrets := b.core.CoreV1().Secrets(b.name)
	kept := must(secrets.Get(b.t.Context(), b.name+"-kubeconfig", metav1.GetOptions{}))(b.t)
	kept.Data[registryv1alpha1.SecretKeyKubeconfig] = file
	must(secrets.Update(b.t.Context(), kept, metav1.UpdateOptions{}))(b.t)
}

// reaccounts makes the hub's account on the brought cluster once more, and returns
// a token of it.
func (b *brought) reaccounts() string {
	b.t.Helper()
	must(b.target.CoreV1().ServiceAccounts(b.name).Create(b.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}))(b.t)
	return must(acme().Token(b.t.Context(), b.name, account, time.Hour))(b.t)
}

// noCanary waits until no pod is in these namespaces of the brought cluster.
func (b *brought) noCanary(namespaces ...string) {
	b.t.Helper()
	for _, namespace := range append(namespaces, b.name) {
		patiently(b.t, 2*time.Minute, "no canary is left in "+namespace, func(ctx context.Context) error {
			pods, err := b.target.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, pod := range pods.Items {
				return fmt.Errorf("pod %s is there, deleted at %v", pod.Name, pod.DeletionTimestamp)
			}
			return nil
		})
	}
}
