package revoker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"cellcast.io/cellcast/pkg/agent/contact"
	"cellcast.io/cellcast/pkg/revocation"
)

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

// cell is the API server of a cell, as far as Secrets go.
type cell struct {
	*fake.FakeMetadataClient
	began time.Time

	mu sync.Mutex
	// troubles are answered to requests of a verb while they are set.
	troubles map[string]error
	// deletions are the attempts, such as "1m0s one".
	deletions []string
}

func newCell(t *testing.T, objects ...*metav1.PartialObjectMetadata) *cell {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cell{FakeMetadataClient: fake.NewSimpleMetadataClient(scheme), began: time.Now(), troubles: map[string]error{}}
	for _, o := range objects {
		c.create(t, o)
	}
	c.PrependReactor("*", "secrets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if deletion, ok := action.(k8stesting.DeleteActionImpl); ok {
			c.deletions = append(c.deletions, time.Since(c.began).String()+" "+deletion.Name)
		}
		trouble := c.troubles[action.GetVerb()]
		return trouble != nil, nil, trouble
	})
	return c
}

func (c *cell) create(t *testing.T, o *metav1.PartialObjectMetadata) {
	t.Helper()
	if err := c.Tracker().Create(secrets, o, o.Namespace); err != nil {
		t.Fatal(err)
	}
}

// fail makes requests of a verb fail, or succeed again.
func (c *cell) fail(verb string, trouble error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.troubles[verb] = trouble
}

func (c *cell) attempts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.deletions)
}

// secret is one that was created now, in the namespace ci.
func secret(name, seconds string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ci", Name: name, UID: types.UID(name + "-uid"),
			CreationTimestamp: metav1.Now(),
			Labels:            map[string]string{revocation.LabelSeconds: seconds},
		},
	}
}

// start runs a revoker of the namespaces cd and ci until the test ends.
func start(t *testing.T, c *cell) *Revoker {
	t.Helper()
	r, err := New(c, []string{"ci", "cd", "ci"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func want(t *testing.T, c *cell, attempts ...string) {
	t.Helper()
	if diff := cmp.Diff(attempts, c.attempts()); diff != "" {
		t.Errorf("deletions (-want +got):\n%s", diff)
	}
}

func TestRevokerDeletesEachSecretAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, secret("two", "120"), secret("one", "60"))
		start(t, c)
		pass(30 * time.Second)
		c.create(t, secret("late", "61")) // at 1m31s
		pass(10 * time.Minute)
		want(t, c, "1m0s one", "1m31s late", "2m0s two")
	})
}

func TestRevokerThatStartsAnewDeletesWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, secret("due", "60"), secret("later", "3600"))
		time.Sleep(time.Hour - time.Second)
		start(t, c)
		pass(2 * time.Second)
		want(t, c, "59m59s due", "1h0m0s later")
	})
}

func TestRevokerDeletesWhatNobodyElseWould(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t)
		start(t, c)
		pass(time.Second)
		c.create(t, secret("unreadable", "soon"))
		pass(time.Second)
		want(t, c, "1s unreadable")
	})
}

func TestRevokerLeavesASecretAloneThatIsBeingDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := secret("held", "60")
		held.DeletionTimestamp, held.Finalizers = new(metav1.Now()), []string{"acme.example.com/hold"}
		c := newCell(t, held)
		r := start(t, c)
		pass(time.Hour)
		want(t, c)
		if diff := cmp.Diff([]string{"cd", "ci"}, r.Promised(time.Now())); diff != "" {
			t.Errorf("promised (-want +got):\n%s", diff)
		}
	})
}

func TestRevokerAsksForLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, secret("one", "60"))
		start(t, c)
		pass(2 * time.Minute)
		for _, action := range c.Actions() {
			if action.GetNamespace() != "ci" && action.GetNamespace() != "cd" {
				t.Errorf("%s of Secrets in %q", action.GetVerb(), action.GetNamespace())
			}
			switch action := action.(type) {
			case k8stesting.ListActionImpl:
				if got := action.ListOptions.LabelSelector; got != revocation.LabelSeconds {
					t.Errorf("lists Secrets by %q", got)
				}
			case k8stesting.WatchActionImpl:
				if got := action.ListOptions.LabelSelector; got != revocation.LabelSeconds {
					t.Errorf("watches Secrets by %q", got)
				}
			case k8stesting.DeleteActionImpl:
				if p := action.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != "one-uid" {
					t.Errorf("deletes whatever has the name: %v", p)
				}
			default:
				t.Errorf("asks to %s", action.GetVerb())
			}
		}
	})
}

func TestRevokerTriesAgainAndPromisesNothingMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, secret("one", "60"))
		c.fail("delete", errors.New("connection refused"))
		r := start(t, c)
		pass(63 * time.Second)
		if diff := cmp.Diff([]string{"cd", "ci"}, r.Promised(time.Now())); diff != "" {
			t.Errorf("promised three seconds after (-want +got):\n%s", diff)
		}
		pass(3 * time.Second)
		if diff := cmp.Diff([]string{"cd"}, r.Promised(time.Now())); diff != "" {
			t.Errorf("promised six seconds after (-want +got):\n%s", diff)
		}
		c.fail("delete", nil)
		pass(time.Minute)
		want(t, c, "1m0s one", "1m0.2s one", "1m0.6s one", "1m1.4s one", "1m3s one", "1m6.2s one")
		if diff := cmp.Diff([]string{"cd", "ci"}, r.Promised(time.Now())); diff != "" {
			t.Errorf("promised again (-want +got):\n%s", diff)
		}
	})
}

func TestRevokerTakesForEndedWhatIsGone(t *testing.T) {
	for name, err := range map[string]error{
		"another replica was faster":           apierrors.NewNotFound(secrets.GroupResource(), "one"),
		"another Secret has taken the name up": apierrors.NewConflict(secrets.GroupResource(), "one", nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCell(t, secret("one", "60"))
				c.fail("delete", err)
				start(t, c)
				pass(10 * time.Minute)
				want(t, c, "1m0s one")
			})
		})
	}
}

func TestRevokerPromisesNothingThatItCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t)
		c.fail("list", apierrors.NewForbidden(secrets.GroupResource(), "", nil))
		r := start(t, c)
		pass(time.Minute)
		if got := r.Promised(time.Now()); got != nil {
			t.Errorf("promised without ever having listed: %v", got)
		}
		c.fail("list", nil)
		pass(time.Minute)
		if diff := cmp.Diff([]string{"cd", "ci"}, r.Promised(time.Now())); diff != "" {
			t.Errorf("promised once it may list (-want +got):\n%s", diff)
		}
		now := time.Now()
		for i, lost := range []time.Duration{16 * time.Second, 14 * time.Second} {
			r.namespaces[i].contact = &contact.Contact{}
			r.namespaces[i].contact.Touch(now.Add(-lost))
		}
		if diff := cmp.Diff([]string{"ci"}, r.Promised(now)); diff != "" {
			t.Errorf("promised without a watch for 16 s and for 14 s (-want +got):\n%s", diff)
		}
	})
}

func TestRevokerPromisesNoNamespaceThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, secret("soon", "60"))
		for i := range MaxPending {
			c.create(t, secret(fmt.Sprintf("later-%d", i), "3600"))
		}
		r := start(t, c)
		pass(time.Second)
		if diff := cmp.Diff([]string{"cd"}, r.Promised(time.Now())); diff != "" {
			t.Errorf("promised with one too many (-want +got):\n%s", diff)
		}
		const warning = `ERROR No further credential is issued in the namespace, for too many are pending namespace="ci" pending=4501 most=4500` + "\n"
		if diff := cmp.Diff(warning, warnings(t, r)); diff != "" {
			t.Errorf("the log with one too many (-want +got):\n%s", diff)
		}
		pass(time.Minute)
		want(t, c, "1m0s soon")
		if diff := cmp.Diff([]string{"cd", "ci"}, r.Promised(time.Now())); diff != "" {
			t.Errorf("promised with as many as may be (-want +got):\n%s", diff)
		}
		if got := warnings(t, r); got != "" {
			t.Errorf("with as many as may be the log says\n%s", got)
		}
	})
}

// warnings are what the log says of namespaces that are full.
func warnings(t *testing.T, r *Revoker) string {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	r.tellFull(klog.NewContext(t.Context(), logger))
	return logger.GetSink().(ktesting.Underlier).GetBuffer().String()
}

func TestRevokerKeepsLittleOfASecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("x", 200_000)
		large := secret("large", "3600")
		large.ResourceVersion = "7"
		large.Labels["note"], large.Annotations = "x", map[string]string{"note": long}
		large.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(long)}}
		large.OwnerReferences = []metav1.OwnerReference{{Name: long}}
		large.Finalizers = []string{long}
		c := newCell(t, large)
		r := start(t, c)
		pass(time.Second)
		want := []any{&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ci", Name: "large", UID: "large-uid", ResourceVersion: "7", CreationTimestamp: large.CreationTimestamp,
			Labels: map[string]string{revocation.LabelSeconds: "3600"},
		}}}
		if diff := cmp.Diff(want, r.namespaces[1].GetStore().List()); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
	})
}

func TestRevokerMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, secret("one", "60"), secret("two", "3600"))
		c.fail("delete", errors.New("connection refused"))
		r := start(t, c)
		pass(70 * time.Second)
		const text = `
# HELP cellcast_agent_revocations_oldest_overdue_seconds For how long the oldest credential of the namespace should have been ended, zero where none should.
# TYPE cellcast_agent_revocations_oldest_overdue_seconds gauge
cellcast_agent_revocations_oldest_overdue_seconds{namespace="cd"} 0
cellcast_agent_revocations_oldest_overdue_seconds{namespace="ci"} 10
# HELP cellcast_agent_revocations_pending Revocable credentials of the namespace that aren't ended yet.
# TYPE cellcast_agent_revocations_pending gauge
cellcast_agent_revocations_pending{namespace="cd"} 0
cellcast_agent_revocations_pending{namespace="ci"} 2
# HELP cellcast_agent_revocations_promised 1 while this replica can end credentials in the namespace and they aren't too many, so that a report of it names the namespace; otherwise 0, and the hub issues no revocable credential there.
# TYPE cellcast_agent_revocations_promised gauge
cellcast_agent_revocations_promised{namespace="cd"} 1
cellcast_agent_revocations_promised{namespace="ci"} 0
# HELP cellcast_agent_revocations_total Attempts to end a revocable credential whose time was over, by result: ended, gone (another replica or the hub was faster), failed (tried again).
# TYPE cellcast_agent_revocations_total counter
cellcast_agent_revocations_total{result="ended"} 0
cellcast_agent_revocations_total{result="failed"} 6
cellcast_agent_revocations_total{result="gone"} 0
`
		if err := testutil.CollectAndCompare(r, strings.NewReader(text)); err != nil {
			t.Error(err)
		}
		c.fail("delete", nil)
		pass(time.Minute)
		if got := testutil.ToFloat64(r.metrics.attempts.WithLabelValues("ended")); got != 1 {
			t.Errorf("%v credentials ended, want 1", got)
		}
	})
}

func TestRevokerWithoutNamespacesAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := New(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if !r.WaitForSync(ctx) || r.Promised(time.Now()) != nil {
			t.Error("it isn't in sync at once, or promises something")
		}
		r.Run(ctx)
	})
}
