package targets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/seal"
	"cellcast.io/cellcast/test/world"
)

// Of two replicas one runs the probe, the other takes the canary's post and mints
// the tokens; both let go of a target that is unregistered.
func TestTwoReplicasServeOneTarget(t *testing.T) {
	requireNode(t)
	second, url, tokens := secondReplica(t)
	b := bring(t)
	b.keep(b.kubeconfig(b.token))
	row := b.register(func(spec *registryv1alpha1.ClusterTargetSpec) { spec.IngestURL = url })
	inState(t, b.first(), registryv1alpha1.TargetReady)
	took := `"event":"artifact","outcome":"allowed"`
	for replica, want := range map[*world.Server]bool{hub.Hub.Server: false, second: true} {
		if got := recorded(t, replica, took, row.UID); got != want {
			t.Errorf("that %s took the canary's post is %t", replica.Name(), got)
		}
	}

	throughReplica(t, second)
	key := must(seal.NewKey())(t)
	eventually(t, "the second replica mints a token", func(context.Context) error {
		if _, err := b.asksForAToken(b.hub, cellcastv1alpha1.TargetTokenSpec{Recipient: key.Recipient()}); err != nil {
			return err
		}
		if !recorded(t, second, `"event":"mint","outcome":"allowed"`, row.UID) {
			return errors.New("another did")
		}
		return nil
	})
	for _, dir := range []string{tokenDir, tokens} {
		if got := must(os.ReadFile(filepath.Join(dir, string(row.UID))))(t); string(got) != b.token {
			t.Errorf("%s hasn't the token", dir)
		}
	}
	traceUnregisters(t, b)
	eventually(t, "no replica has the token", func(context.Context) error {
		for _, dir := range []string{tokenDir, tokens} {
			if _, err := os.Stat(filepath.Join(dir, string(row.UID))); !errors.Is(err, fs.ErrNotExist) {
				return errors.Join(errors.New("it's in "+dir), err)
			}
		}
		return nil
	})
	if found := traceFound(t, traceParts(b.token)); len(found) > 0 {
		t.Errorf("the token is still in %q", found)
	}
}

// recorded reports whether a replica's trail has such a record of a target.
func recorded(t *testing.T, replica *world.Server, record string, target types.UID) bool {
	t.Helper()
	for line := range strings.Lines(string(must(os.ReadFile(replica.LogFile()))(t))) {
		if strings.Contains(line, record) && strings.Contains(line, `"target":"`+registryv1alpha1.TargetAddress(target)+`"`) {
			return true
		}
	}
	return false
}

// secondReplica starts another replica, with an external listener and a folder for
// tokens of its own.
func secondReplica(t *testing.T) (server *world.Server, external, tokens string) {
	t.Helper()
	tokens = must(os.MkdirTemp("/dev/shm", "cellcast-tokens-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(tokens) })
	host, port := acme().Node.Address, strconv.Itoa(must(hub.TakePort())(t))
	server = must(hub.Hub.AddReplica(t.Context(), world.ServerOptions{
		Name: "cellcast-hub-second", PipelineAuthentication: hub.Authentication,
		Args: []string{
			"-v=2", "--token-dir=" + tokens, "--target-rescan=" + rescan.String(), "--target-allow-addresses=127.0.0.0/8", "--target-ports=1024-65535",
			"--canary-image=" + world.CanaryImage, "--ingest-ca-file=" + filepath.Join(hub.Dir, "ingest-ca.pem"),
			"--external-bind-address=" + host, "--external-port=" + port, "--warmup-timeout=0s",
		},
	}))(t)
	t.Cleanup(func() { _ = server.Stop() })
	return server, "https://" + net.JoinHostPort(host, port), tokens
}

// throughReplica sends the hub's aggregator to a replica until the test ends.
func throughReplica(t *testing.T, replica *world.Server) {
	t.Helper()
	services := must(dynamic.NewForConfig(hub.Hub.Admin.Config()))(t).
		Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	const name = "v1alpha1.cellcast.io"
	was := must(services.Get(t.Context(), name, metav1.GetOptions{}))(t)
	before, _, err := unstructured.NestedInt64(was.Object, "spec", "service", "port")
	if err != nil {
		t.Fatal(err)
	}
	port := must(strconv.ParseInt(must(url.Parse(replica.URL))(t).Port(), 10, 32))(t)
	point := func(ctx context.Context, port int64) {
		patch := fmt.Appendf(nil, `{"spec":{"service":{"port":%d}}}`, port)
		if _, err := services.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		point(context.Background(), before)
		if err := hub.Eventually(context.Background(), "the aggregator goes to the hub's first replica", leadsToTheFirst); err != nil {
			t.Error(err)
		}
	})
	point(t.Context(), port)
}

// leadsToTheFirst asks for a token of no target, and sees that the first replica's
// trail has it.
func leadsToTheFirst(ctx context.Context) error {
	name := string(uuid.NewUUID())
	err := asked(hub.Admin, metav1.NamespaceDefault, name, "token", &cellcastv1alpha1.TargetToken{}).Do(ctx).Error()
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("the answer isn't that there's no such target: %w", err)
	}
	log, err := os.ReadFile(hub.Hub.Server.LogFile())
	if err == nil && !strings.Contains(string(log), name) {
		err = errors.New("another one answered")
	}
	return err
}
