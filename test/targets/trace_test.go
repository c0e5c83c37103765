package targets

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/seal"
)

// While a target is registered, its token is in two places: the owner's own
// Secret, and a file on tmpfs that nobody else may read. After its owner has
// unregistered it, it's nowhere: no file of any process, no key of any control
// plane, no log, no audit record.
func TestUnregisteringLeavesNoTrace(t *testing.T) {
	requireNode(t)
	b := bring(t)
	b.keep(b.kubeconfig(b.token))
	row := b.register(nil)
	inState(t, b.first(), registryv1alpha1.TargetReady)
	minted := traceMints(t, b)
	registered := traceParts(b.token)

	file := filepath.Join(tokenDir, string(row.UID))
	want := []string{file, "etcd /hub/secrets/" + b.name + "/" + b.name + "-kubeconfig"}
	if diff := cmp.Diff(want, traceFound(t, registered)); diff != "" {
		t.Fatalf("where the token is while it's registered (-want +got):\n%s", diff)
	}
	if mode := must(os.Stat(file))(t).Mode(); mode != 0o600 {
		t.Errorf("the file has the mode %s", mode)
	}
	var about syscall.Statfs_t
	if err := syscall.Statfs(tokenDir, &about); err != nil || about.Type != 0x01021994 {
		t.Errorf("the folder isn't on tmpfs: %v", err)
	}

	traceUnregisters(t, b)
	eventually(t, "the token file is gone", func(context.Context) error {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(errors.New("it's there"), err)
		}
		return nil
	})
	for what, parts := range map[string][]string{"registered": registered, "minted": traceParts(minted)} {
		if found := traceFound(t, parts); len(found) > 0 {
			t.Errorf("the %s token is still in %q", what, found)
		}
	}
	trail := string(must(os.ReadFile(hub.Hub.Server.LogFile()))(t))
	for _, event := range []string{"credential_read", "probe", "artifact", "mint"} {
		if !strings.Contains(trail, `"event":"`+event+`"`) {
			t.Errorf("the trail has no %s, so that the search shows little", event)
		}
	}
}

// traceMints is a token of the target, sealed on its way: the hub's API server
// records whole answers here.
func traceMints(t *testing.T, b *brought) string {
	t.Helper()
	key := must(seal.NewKey())(t)
	answer, err := b.asksOnceReady(cellcastv1alpha1.TargetTokenSpec{Recipient: key.Recipient()})
	if err != nil {
		t.Fatal(err)
	}
	return must(key.Open(answer.Credential.SealedToken))(t)
}

// traceUnregisters takes back all that registering made at the hub.
func traceUnregisters(t *testing.T, b *brought) {
	t.Helper()
	ctx, name, now := t.Context(), b.name+"-kubeconfig", metav1.DeleteOptions{}
	if err := errors.Join(
		b.hub.RegistryV1alpha1().ClusterTargets(b.name).Delete(ctx, b.name, now),
		b.core.RbacV1().RoleBindings(b.name).Delete(ctx, name, now),
		b.core.RbacV1().Roles(b.name).Delete(ctx, name, now),
		b.core.CoreV1().Secrets(b.name).Delete(ctx, name, now),
	); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the row is gone", func(ctx context.Context) error {
		_, err := b.hub.RegistryV1alpha1().ClusterTargets(b.name).Get(ctx, b.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it's there"), err)
	})
}

// traceParts are what a token is known by, claims and signature, as they are and
// as base64 has them at each of its three offsets: so data is written in JSON.
func traceParts(token string) []string {
	parts := strings.Split(token, ".")[1:]
	for _, part := range slices.Clone(parts) {
		for offset := range 3 {
			encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + part))
			parts = append(parts, encoded[4:len(encoded)-4])
		}
	}
	return parts
}

func traceIn(content string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(content, part) })
}

// traceFound are the places in which a part of the token is, sorted.
func traceFound(t *testing.T, parts []string) (found []string) {
	t.Helper()
	places := traceFiles(t, tokenDir)
	files := traceFiles(t, hub.Dir)
	stored := traceStored(t)
	if len(files) < 50 || len(stored) < 500 {
		t.Fatalf("only %d files and %d keys were searched", len(files), len(stored))
	}
	for _, more := range []map[string]string{files, stored} {
		for place, content := range more {
			places[place] = content
		}
	}
	for place, content := range places {
		if traceIn(content, parts) {
			found = append(found, place)
		}
	}
	slices.Sort(found)
	t.Logf("searched %d files and %d keys", len(files), len(stored))
	return found
}

// traceLogs are the logs and audit logs of all processes, and of pods.
func traceLogs(t *testing.T) map[string]string {
	t.Helper()
	return traceFiles(t, filepath.Join(hub.Dir, "logs"))
}

// traceFiles are the files below a folder, but those of etcd: what they hold is
// told by their keys, and what was deleted they keep until they're compacted.
func traceFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went meanwhile
			return nil
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "etcd":
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// traceStored is what all control planes have stored, Events too.
func traceStored(t *testing.T) map[string]string {
	t.Helper()
	client := must(clientv3.New(clientv3.Config{Endpoints: []string{hub.EtcdURL}, DialTimeout: 10 * time.Second}))(t)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer := must(client.Get(ctx, "\x00", clientv3.WithFromKey()))(t)
	stored := map[string]string{}
	for _, kv := range answer.Kvs {
		stored["etcd "+string(kv.Key)] = string(kv.Value)
	}
	return stored
}
