package targets

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/ingest"
	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/pkg/podidentity"
	"cellcast.io/cellcast/test/world"
)

// dispatched is what a hub has that dispatches pods to a fleet cell: the pods that
// it has recorded, and its client of the cell. The cell is a real one.
type dispatched struct {
	cell     *world.Cell
	admin    kubernetes.Interface
	client   *cell.Client
	recorded map[string]ingest.Expected
	taken    atomic.Int64

	good   string       // token
	checks atomic.Int64 // of the good one at the cell
}

const audience = "https://hub.flood.test"

func newDispatched(t *testing.T) *dispatched {
	t.Helper()
	require(t)
	d := &dispatched{cell: hub.Cell("prod-eu"), recorded: map[string]ingest.Expected{}}
	d.admin = clientset(t, d.cell.Admin)
	ctx := t.Context()
	must(d.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "turns"}}, metav1.CreateOptions{}))(t)
	for _, name := range []string{"hub", "worker"} {
		must(d.admin.CoreV1().ServiceAccounts("turns").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
	}
	must(d.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-turns-hub"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "turns", Name: "hub"}},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		_ = d.admin.RbacV1().ClusterRoleBindings().Delete(context.Background(), "test-turns-hub", metav1.DeleteOptions{})
		_ = d.admin.CoreV1().Namespaces().Delete(context.Background(), "turns", metav1.DeleteOptions{})
	})
	token := must(d.cell.Token(ctx, "turns", "hub", time.Hour))(t)
	d.client = must(cell.NewClients(oneToken{token}, cell.Options{Version: "test"}).For(d.cell.Cluster()))(t)
	return d
}

// pod makes a pod on the cell, records it, and returns its token for the audience.
func (d *dispatched) pod(t *testing.T, name, audience string) string {
	t.Helper()
	pod := must(d.admin.CoreV1().Pods("turns").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{ServiceAccountName: "worker", AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "turn", Image: "none"}}},
	}, metav1.CreateOptions{}))(t)
	d.recorded[name] = ingest.Expected{UID: pod.UID, Registration: podidentity.Registration{
		Target:   podidentity.Target{UID: "prod-eu", Mode: podidentity.ModeTokenReview},
		Endpoint: d.cell.URL, CABundle: string(d.cell.CABundle), Issuer: d.cell.Issuer, Audience: audience, Namespace: "turns", ServiceAccount: "worker",
	}}
	answer := must(d.admin.CoreV1().ServiceAccounts("turns").CreateToken(t.Context(), "worker", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: ptr.To[int64](3600),
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: name, UID: pod.UID}},
	}, metav1.CreateOptions{}))(t)
	return answer.Status.Token
}

// CreateTokenReview asks the cell, and counts.
func (d *dispatched) CreateTokenReview(ctx context.Context, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	if review.Spec.Token == d.good {
		d.checks.Add(1)
	}
	return d.client.CreateTokenReview(ctx, review)
}

// Pod, Receive, Keys, Reviewer and Write are what the handler asks of a hub.
func (d *dispatched) Pod(_ context.Context, name string) (ingest.Expected, bool) {
	expected, ok := d.recorded[name]
	return expected, ok
}

func (d *dispatched) Receive(context.Context, ingest.Post) (news bool, err error) {
	d.taken.Add(1)
	return true, nil
}

func (d *dispatched) Keys(podidentity.Registration) keyset.Fetch             { return nil }
func (d *dispatched) Reviewer(podidentity.Registration) podidentity.Reviewer { return d }
func (d *dispatched) Write(audit.Record) error                               { return nil }

// TestAFloodAtAFleetCell has the handler of the external listener ask a real cell
// about its pods. No source is told from another, as behind a proxy, so that the
// bound for each target is all that stands before the cell: that's the defence.
// The good pod has another: what was accepted is reviewed once in a minute.
func TestAFloodAtAFleetCell(t *testing.T) {
	d := newDispatched(t)
	good, gone := d.pod(t, "good", audience), d.pod(t, "gone", audience)
	foreign := d.pod(t, "foreign", audience)
	d.good = good
	if err := d.admin.CoreV1().Pods("turns").Delete(t.Context(), "gone", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	handler := ingest.New(ingest.Options{Pods: d, Validators: podidentity.New(d), Receiver: d, Audit: d, Rates: ingest.Rates{PerSecond: 200, PerTarget: ingest.DefaultPerTarget}})
	server := httptest.NewTLSServer(handler)
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	from := func(address string) *poster { return newPosterAt(t, address, server.URL, ca) }

	steady, later := from("127.0.0.2"), 0
	// takes posts as a pod does, until it isn't told to come later, as it is where the
	// cell doesn't answer a review in time.
	takes := func() error {
		return poll(t.Context(), time.Minute, func(ctx context.Context) error {
			got, err := steady.post(ctx, "good", good)
			switch {
			case got.Code == http.StatusTooManyRequests || got.Code == http.StatusServiceUnavailable:
				later++
				return fmt.Errorf("the answer is %+v", got)
			case err != nil || got.Code != http.StatusNoContent:
				t.Errorf("a good post: %+v, %v", got, err)
			}
			return nil
		})
	}
	if err := takes(); err != nil { // the first may come before the hub's rights at the cell
		t.Fatal(err)
	}
	later = 0
	checked := int(d.checks.Load())
	reviews, before, began := tokenReviews(t), heapInUse(), time.Now()
	over, codes := make(chan struct{}), map[int]int{}
	go func() {
		defer close(over)
		codes = flood(t, from, func(i int64) (pod, token string) {
			switch i % 6 {
			case 0:
				return strings.ToLower(rand.Text()), junk()
			case 1:
				return "good", junk()
			case 2: // of a pod of the cell's, for another one
				return "good", foreign
			case 3: // all that the pod's own token says, and not signed by the cell
				return "good", forged(good)
			case 4:
				return "gone", gone
			default:
				return "foreign", forged(foreign)
			}
		}, http.StatusServiceUnavailable)
	}()
	var latencies []time.Duration
	for ended := false; !ended; {
		start := time.Now()
		if err := takes(); err != nil {
			t.Errorf("a good post amid the flood: %v", err)
		}
		latencies = append(latencies, time.Since(start))
		select {
		case <-over:
			ended = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	elapsed := time.Since(began)
	server.CloseClientConnections()
	after, reviewed, minutes := heapInUse(), tokenReviews(t)-reviews, int(elapsed/time.Minute)
	checked = int(d.checks.Load()) - checked
	if most := 1 + minutes + later; checked > most {
		t.Errorf("the good token was reviewed %d times in %s, want %d at most", checked, elapsed, most)
	}
	if most := 3 + 10*minutes; later > most { // each review may have to wait some times for a slow cell
		t.Errorf("good posts were told %d times in %s to come later, want %d at most", later, elapsed, most)
	}
	if most := 2*ingest.DefaultPerTarget + int(ingest.DefaultPerTarget*elapsed.Seconds()) + checked + 2; reviewed > most || reviewed == 0 {
		t.Errorf("%d TokenReviews in %s, want some and %d at most", reviewed, elapsed, most)
	}
	if grown := after - before; grown > mostGrowth/2 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if got, want := d.taken.Load(), int64(len(latencies)+1); got != want {
		t.Errorf("%d posts were taken, want the %d good ones", got, want)
	}
	t.Logf("%d posts from %d connections in %s", floodPosts(t), floodConnections, elapsed.Round(time.Millisecond))
	t.Logf("answers: %s", counted(codes))
	t.Logf("TokenReviews at the cell: %d, %d of them of the good token", reviewed, checked)
	t.Logf("heap in use: %d MiB before, %d after", before>>20, after>>20)
	t.Logf("good posts: %d, all taken, told %d times to come later, %s", len(latencies), later, percentiles(latencies))
}

// forged is the token with another signature, another one each time.
func forged(token string) string {
	parts := strings.Split(token, ".")
	signature := []byte(parts[2])
	copy(signature, rand.Text())
	return strings.Join(slices.Concat(parts[:2], []string{string(signature)}), ".")
}

// heapInUse is what lives in this process, in bytes.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
