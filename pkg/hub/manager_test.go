package hub

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

// ended is a manager that ends with the error.
type ended struct {
	manager.Manager
	err error
}

func (e ended) Start(context.Context) error { return e.err }

func TestControllersThatEnd(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"as they were told": {over, nil, ""},
		"by themselves":     {t.Context(), nil, "controllers: they ended"},
		"with an error":     {t.Context(), errors.New("no cache"), "controllers: no cache"},
		"for want of the lease": {t.Context(), errors.New("leader election lost"),
			"the lease cellcast-system/cellcast-hub is lost: it couldn't be renewed for 20s, so another replica may lead; this one ends and is to be restarted: leader election lost"},
		"with an error as they were told": {over, errors.New("no cache"), "controllers: no cache"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &Server{config: NewConfig(DefaultSettings()), manager: ended{err: tc.err}}
			err := s.runControllers(tc.ctx)
			if (err == nil) != (tc.want == "") || (err != nil && err.Error() != tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if tc.err != nil && !errors.Is(err, tc.err) {
				t.Errorf("the cause is lost: %v", err)
			}
		})
	}
}

// A holder that renews every four seconds must get through an API server that
// is away for ten, and leave the lease to others in good time.
func TestLeaseOutlastsAnOutageOfTenSeconds(t *testing.T) {
	if renewDeadline < 10*1e9+2*retryPeriod {
		t.Errorf("the holder gives up after %s", renewDeadline)
	}
	if leaseDuration <= renewDeadline {
		t.Errorf("another replica takes a lease after %s that its holder gives up after %s", leaseDuration, renewDeadline)
	}
}

// What the owner of a target writes beside its spec fills no replica's memory.
func TestTheCacheKeepsOfARowWhatTheHubReads(t *testing.T) {
	row := &registryv1alpha1.ClusterTarget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "payments", Name: "gpu", UID: "uid-1", ResourceVersion: "7", Generation: 2,
			Labels: map[string]string{"env": "dev"}, Finalizers: []string{"registry.cellcast.io/target"},
			Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "x"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec:   registryv1alpha1.ClusterTargetSpec{Namespace: "gpu-runs"},
		Status: registryv1alpha1.ClusterTargetStatus{State: registryv1alpha1.TargetReady},
	}
	want := row.DeepCopy()
	want.Annotations, want.ManagedFields = nil, nil
	got, err := NewConfig(DefaultSettings()).managerOptions().Cache.DefaultTransform(row)
	if diff := cmp.Diff(any(want), got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// What a replica needs to end must fit into what a pod is given.
func TestEndingFitsIntoAPodsThirtySeconds(t *testing.T) {
	s := DefaultSettings()
	if all := s.DrainDelay + s.ShutdownTimeout + max(controllersEnd, externalEnd); all >= 30*1e9 {
		t.Errorf("it takes up to %s", all)
	}
}
