package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/custody"
	"cellcast.io/cellcast/pkg/podidentity"
)

// replica is what one replica holds of the target payments/gpu, whose Secret is
// the version 1 of hers.
type replica struct {
	*informertest.FakeInformers
	targets *targets
	dir     string

	mu      sync.Mutex
	row     *registryv1alpha1.ClusterTarget
	secrets map[string]*corev1.Secret
	reads   int
}

func newReplica(t *testing.T) *replica {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := registryv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &replica{FakeInformers: &informertest.FakeInformers{Scheme: scheme}, dir: filepath.Join(t.TempDir(), "tokens"), secrets: map[string]*corev1.Secret{}}
	r.row = &registryv1alpha1.ClusterTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "gpu", UID: "aaaaaaaa-0000-0000-0000-000000000001", Generation: 1},
		Spec:       registryv1alpha1.ClusterTargetSpec{CredentialRef: secretNamed("hers")},
		Status:     registryv1alpha1.ClusterTargetStatus{State: registryv1alpha1.TargetReady, CredentialVersion: "secret:1"},
	}
	r.put(t, "hers", "1")
	held, err := custody.New(custody.Options{Dir: r.dir, Anywhere: true, Secrets: r.secretsOf(), Audit: deaf{},
		Hub: types.NamespacedName{Namespace: "cellcast-system", Name: "cellcast-hub"}})
	if err != nil {
		t.Fatal(err)
	}
	r.targets = &targets{rows: targetRows{r}, custody: held, connected: map[types.UID]connected{}}
	r.targets.clients = cell.NewClients(r.targets, cell.Options{})
	r.targets.identity = podidentity.New(podSources{targets: r.targets, cells: r.targets.clients})
	return r
}

func secretNamed(name string) registryv1alpha1.TargetCredentialRef {
	return registryv1alpha1.TargetCredentialRef{SecretRef: &registryv1alpha1.TargetSecretRef{Name: name}}
}

// deaf is a trail that takes everything.
type deaf struct{}

func (deaf) Write(audit.Record) error { return nil }

// put writes a Secret whose token is its name and version.
func (r *replica) put(t *testing.T, name, version string) {
	t.Helper()
	file, err := os.ReadFile("../kubeconfig/testdata/good.plain.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file = []byte(strings.ReplaceAll(string(file), "canary-token", name+"-"+version))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets[name] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}, Type: registryv1alpha1.SecretTypeKubeconfig,
		Data: map[string][]byte{registryv1alpha1.SecretKeyKubeconfig: file}}
}

// secretsOf reads them as the hub's API server lets it be done.
func (r *replica) secretsOf() custody.Secrets { return secretReader{r} }

type secretReader struct{ *replica }

func (r secretReader) Get(_ context.Context, _, name string) (*corev1.Secret, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	if s := r.secrets[name]; s != nil {
		return s, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

// Get returns the row as the cache has it.
func (r *replica) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	row, ok := into.(*registryv1alpha1.ClusterTarget)
	if !ok {
		return fmt.Errorf("it has no %T", into)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.row.DeepCopyInto(row)
	return nil
}

// watches changes the row, as the watch tells of it.
func (r *replica) watches(t *testing.T, change func(*registryv1alpha1.ClusterTarget)) {
	t.Helper()
	informer, err := r.FakeInformerFor(t.Context(), &registryv1alpha1.ClusterTarget{})
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	old, now := r.row, r.row.DeepCopy()
	change(now)
	r.row = now
	r.mu.Unlock()
	informer.Update(old, now)
}

// holds returns the token that is in the replica's folder.
func (r *replica) holds(t *testing.T) string {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(r.dir, string(r.row.UID)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(token)
}

func probedWith(v string) func(*registryv1alpha1.ClusterTarget) {
	return func(row *registryv1alpha1.ClusterTarget) { row.Status.CredentialVersion = v }
}

func in(state registryv1alpha1.TargetState) func(*registryv1alpha1.ClusterTarget) {
	return func(row *registryv1alpha1.ClusterTarget) { row.Status.State = state }
}

func names(secret string) func(*registryv1alpha1.ClusterTarget) {
	return func(row *registryv1alpha1.ClusterTarget) {
		row.Generation++
		row.Spec.CredentialRef = secretNamed(secret)
	}
}

// A replica that nobody asks keeps no credential that its owner has replaced.
func TestAReplacedCredentialIsLetGoOf(t *testing.T) {
	for sentence, tt := range map[string]struct {
		connects bool // before it's replaced
		does     func(*testing.T, *replica)
		holds    string
		reads    int
	}{
		"when the leader has probed with a newer one": {true, func(t *testing.T, r *replica) {
			r.put(t, "hers", "2")
			r.watches(t, probedWith("secret:2"))
		}, "hers-2", 2},
		"when the row names another Secret": {true, func(t *testing.T, r *replica) {
			r.put(t, "another", "7")
			r.watches(t, names("another"))
		}, "another-7", 2},
		"though the other isn't there": {true, func(t *testing.T, r *replica) { r.watches(t, names("another")) }, "", 2},
		"when the leader couldn't read it any more": {true, func(t *testing.T, r *replica) {
			r.mu.Lock()
			delete(r.secrets, "hers")
			r.mu.Unlock()
			r.watches(t, in(registryv1alpha1.TargetCredentialUnavailable))
		}, "", 2},
		"when the target refuses it": {true, func(t *testing.T, r *replica) {
			r.watches(t, in(registryv1alpha1.TargetCredentialRejected))
		}, "", 1},
		"and not read again by the replica that has read the newer one": {true, func(t *testing.T, r *replica) {
			r.put(t, "hers", "2")
			if _, err := r.targets.connect(t.Context(), r.row); err != nil {
				t.Fatal(err)
			}
			r.watches(t, probedWith("secret:2"))
		}, "hers-2", 2},
		"and read once, however often the row changes meanwhile": {true, func(t *testing.T, r *replica) {
			r.put(t, "another", "7")
			r.mu.Lock() // nothing is read yet
			old, now := r.row, r.row.DeepCopy()
			names("another")(now)
			r.row = now
			r.mu.Unlock()
			informer, err := r.FakeInformerFor(t.Context(), &registryv1alpha1.ClusterTarget{})
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				informer.Update(old, now)
			}
		}, "another-7", 2},
		"and stays when something else changes": {true, func(t *testing.T, r *replica) {
			r.watches(t, func(row *registryv1alpha1.ClusterTarget) { row.Generation++; row.Spec.Queue = "turns" })
		}, "hers-1", 1},
		"and isn't read by a replica that hasn't it": {false, func(t *testing.T, r *replica) { r.watches(t, probedWith("secret:2")) }, "", 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplica(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _ = farewells{r.targets}.Start(ctx) }()
				if tt.connects {
					if _, err := r.targets.connect(ctx, r.row); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				tt.does(t, r)
				synctest.Wait()
				if got := r.holds(t); got != tt.holds || r.reads != tt.reads {
					t.Errorf("it holds %q after %d reads, not %q after %d", got, r.reads, tt.holds, tt.reads)
				}
			})
		})
	}
}

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
			row := &registryv1alpha1.ClusterTarget{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{registryv1alpha1.TargetFinalizer}}}
			row.Status.State = registryv1alpha1.TargetReady
			tt.change(row)
			if got := over(row); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
