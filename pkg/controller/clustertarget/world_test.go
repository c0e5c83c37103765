package clustertarget

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
)

// lag is how far a replica's cache is behind the API.
const lag = 20 * time.Millisecond

// world is the hub's API, and the targets that rows speak of.
type world struct {
	t   *testing.T
	api client.WithWatch

	mu       sync.Mutex
	clusters map[string]*cluster // by the target's name
	records  []audit.Record
	patches  []patch
	forgets  []types.UID
	probes   int
	// invalid has the API refuse the next status that has checks.
	invalid bool
}

// patch is a write of a status.
type patch struct {
	name string
	at   time.Time
	body string
}

// newWorld is to be called in a synctest bubble, which it must not outlive.
func newWorld(t *testing.T) *world {
	scheme := runtime.NewScheme()
	if err := registryv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &world{t: t, clusters: map[string]*cluster{},
		api: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&registryv1alpha1.ClusterTarget{}).
			WithIndex(&registryv1alpha1.ClusterTarget{}, nameField, byName).Build()}
}

// register creates a row and what stands behind it.
func (w *world) register(name string, c *cluster) *cluster {
	w.mu.Lock()
	c.pods = map[string]types.UID{}
	w.clusters[name] = c
	w.mu.Unlock()
	w.create(&registryv1alpha1.ClusterTarget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID("uid-" + name), Generation: 1}})
	return c
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	if err := w.api.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) row(name string) *registryv1alpha1.ClusterTarget {
	w.t.Helper()
	row := &registryv1alpha1.ClusterTarget{}
	if err := w.api.Get(w.t.Context(), keyOf(name), row); err != nil {
		w.t.Fatal(err)
	}
	return row
}

// change changes the spec, as the API does it.
func (w *world) change(name string) {
	w.t.Helper()
	row := w.row(name)
	row.Generation++
	row.Spec.Queue += "q"
	if err := w.api.Update(w.t.Context(), row); err != nil {
		w.t.Fatal(err)
	}
}

// replica writes to the status as a replica without the lease does.
func (w *world) replica(name, status string) {
	row := &registryv1alpha1.ClusterTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	if err := w.api.Status().Patch(context.Background(), row, client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))); err != nil {
		w.t.Error(err)
	}
}

func (w *world) request(name, id string) {
	w.replica(name, fmt.Sprintf(`{"request":{"id":%q,"requestedAt":%q}}`, id, time.Now().UTC().Format(time.RFC3339)))
}

// probed is how many probes have begun.
func (w *world) probed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.probes
}

// after waits for the time, and then until nothing moves.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) wantState(name string, want registryv1alpha1.TargetState) {
	w.t.Helper()
	if got := w.row(name).Status; got.State != want {
		w.t.Fatalf("%s is %q (%s), want %q", name, got.State, got.Failing, want)
	}
}

// lead starts a leader and returns what kills it: nothing of it writes, or
// deletes anything, after that.
func (w *world) lead() (kill func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	cache := &cache{rows: map[types.NamespacedName]*registryv1alpha1.ClusterTarget{}}
	alive := func() error { return ctx.Err() }
	api := interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if row, ok := object.(*registryv1alpha1.ClusterTarget); ok {
				return cache.get(key, row)
			}
			return c.Get(ctx, key, object, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := alive(); err != nil {
				return err
			}
			if err := w.note(object, p); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, object, p, opts...)
		},
	})
	r := New(Config{Client: api, Prober: prober{w, alive}, Targets: targets{w, alive}, Clusters: ClusterRows{w.api},
		Audit: w, Clock: clock.RealClock{}, Rescan: 5 * time.Minute})
	c, err := controller.NewUnmanaged("clustertarget", controller.Options{
		Reconciler: r, MaxConcurrentReconciles: 8, SkipNameValidation: ptr.To(true),
		LogConstructor: func(*ctrl.Request) logr.Logger { return logr.Discard() },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	watch := source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		return cache.follow(ctx, w.api, queue, r)
	})
	for _, s := range []source.Source{watch, source.Channel(r.wake, &handler.EnqueueRequestForObject{})} {
		if err := c.Watch(s); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, start := range []func(context.Context) error{c.Start, r.runs.Start, r.looks.Start} {
		go func() {
			if err := start(ctx); err != nil {
				w.t.Error(err)
			}
		}()
	}
	return func() { cancel(); w.after(20 * time.Second) }
}

func (w *world) note(object client.Object, p client.Patch) error {
	body, err := p.Data(object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.patches = append(w.patches, patch{object.GetName(), time.Now(), string(body)})
	return w.refuse(object, body)
}

func (w *world) Write(r audit.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, r)
	return nil
}

// recorded are the records of an event, without their times.
func (w *world) recorded(event audit.Event) []audit.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []audit.Record
	for _, r := range w.records {
		if r.Event == event {
			r.Time, r.DurationMS = time.Time{}, 0
			found = append(found, r)
		}
	}
	return found
}

// cache is what a replica knows of the rows.
type cache struct {
	mu   sync.Mutex
	rows map[types.NamespacedName]*registryv1alpha1.ClusterTarget
}

func (c *cache) get(key client.ObjectKey, into *registryv1alpha1.ClusterTarget) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	row, ok := c.rows[key]
	if !ok {
		return notFound(key.Name)
	}
	row.DeepCopyInto(into)
	return nil
}

// follow fills the cache, somewhat late, and wakes the reconciler.
func (c *cache) follow(ctx context.Context, api client.WithWatch, queue workqueue.TypedRateLimitingInterface[ctrl.Request], r *Reconciler) error {
	rows, cells := &registryv1alpha1.ClusterTargetList{}, &registryv1alpha1.ClusterList{}
	changes, err := api.Watch(ctx, rows)
	if err != nil {
		return err
	}
	fleet, err := api.Watch(ctx, cells)
	if err != nil {
		return err
	}
	if err := api.List(ctx, rows); err != nil {
		return err
	}
	for i := range rows.Items {
		c.put(&rows.Items[i], false, queue)
	}
	late := make(chan func(), 10_000)
	go func() {
		for f := range late {
			f()
		}
	}()
	go func() {
		defer close(late)
		for {
			select {
			case e := <-changes.ResultChan():
				due := time.Now().Add(lag)
				late <- func() {
					time.Sleep(time.Until(due))
					c.put(e.Object.(*registryv1alpha1.ClusterTarget), e.Type == "DELETED", queue)
				}
			case e := <-fleet.ResultChan():
				for _, request := range r.named(ctx, e.Object.(client.Object)) {
					queue.Add(request)
				}
			case <-ctx.Done():
				changes.Stop()
				fleet.Stop()
				return
			}
		}
	}()
	return nil
}

func (c *cache) put(row *registryv1alpha1.ClusterTarget, deleted bool, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	key := client.ObjectKeyFromObject(row)
	c.mu.Lock()
	if c.rows[key] = row.DeepCopy(); deleted {
		delete(c.rows, key)
	}
	c.mu.Unlock()
	queue.Add(ctrl.Request{NamespacedName: key})
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}
