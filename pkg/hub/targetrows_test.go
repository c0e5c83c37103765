package hub

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	targetcontroller "cellcast.io/cellcast/pkg/controller/clustertarget"
)

func TestATargetIsLetGoOfWhenItIsOver(t *testing.T) {
	now := metav1.Now()
	for sentence, tt := range map[string]struct {
		change func(*registryv1alpha1.ClusterTarget)
		want   bool
	}{
		"of a target in use it's kept":   {func(*registryv1alpha1.ClusterTarget) {}, false},
		"of one that is unreachable too": {func(row *registryv1alpha1.ClusterTarget) { row.Status.State = registryv1alpha1.TargetUnreachable }, false},
		"it's kept while the source is away": {func(row *registryv1alpha1.ClusterTarget) {
			row.Status.State = registryv1alpha1.TargetCredentialUnavailable
		}, false},
		"it goes when the target doesn't believe it": {func(row *registryv1alpha1.ClusterTarget) {
			row.Status.State = registryv1alpha1.TargetCredentialRejected
		}, true},
		"while the leader lets go of a row it's needed": {func(row *registryv1alpha1.ClusterTarget) { row.DeletionTimestamp = &now }, false},
		"a finalizer of somebody else keeps nothing": {func(row *registryv1alpha1.ClusterTarget) {
			row.DeletionTimestamp, row.Finalizers = &now, []string{"somebody.example/else"}
		}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			row := &registryv1alpha1.ClusterTarget{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{targetcontroller.Finalizer}}}
			row.Status.State = registryv1alpha1.TargetReady
			tt.change(row)
			if got := over(row); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
