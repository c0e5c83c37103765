package custody

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/secret"
)

func TestLoadKeepsTheTokenInItsFileAlone(t *testing.T) {
	w := newWorld(t)
	w.put(t, "eu", server, oldToken)
	got := w.mustLoad(t, secretRef(uidA, "eu"))
	want := Connection{Address: addressA, Server: server, CAData: w.ca, Version: "secret:1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	path := filepath.Join(w.dir, string(uidA))
	data, err := os.ReadFile(path)
	if err != nil || string(data) != oldToken {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	w.wantToken(t, addressA, oldToken)

	// Nothing but the file has it.
	if err := os.WriteFile(path, []byte("canary-of-the-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.wantToken(t, addressA, "canary-of-the-file")
	if text := fmt.Sprintf("%+v %#v %+v %+v", got, got, w.held[addressA], w.Custody); strings.Contains(text, "canary") {
		t.Error("a token is printed with the rest")
	}
}

func TestLoadReadsTheSourceEachTime(t *testing.T) {
	w := newWorld(t)
	w.put(t, "eu", server, oldToken)
	w.mustLoad(t, secretRef(uidA, "eu"))
	w.put(t, "eu", server, newToken)
	if got := w.mustLoad(t, secretRef(uidA, "eu")); got.Version != "secret:2" {
		t.Errorf("got version %s", got.Version)
	}
	w.wantToken(t, addressA, newToken)
	if got := w.secrets.count("eu"); got != 2 {
		t.Errorf("the Secret was read %d times", got)
	}
}

func TestRefOfARow(t *testing.T) {
	row := &registryv1alpha1.ClusterTarget{ObjectMeta: metav1.ObjectMeta{UID: uidA, Namespace: "payments", Name: "eu"}}
	row.Spec.Owner.User = "alice"
	row.Spec.CredentialRef.SecretRef = &registryv1alpha1.TargetSecretRef{Name: "eu-kubeconfig"}
	if diff := cmp.Diff(secretRef(uidA, "eu-kubeconfig"), RefOf(row)); diff != "" {
		t.Error(diff)
	}
}

func TestASecretThatDoesntServe(t *testing.T) {
	kubeconfigType := corev1.SecretType(registryv1alpha1.SecretTypeKubeconfig)
	const create = "kubectl create secret generic eu -n payments --type=cellcast.io/kubeconfig --from-file=kubeconfig=FILE"
	tests := map[string]struct {
		prepare func(w *world, good []byte)
		reason  Reason
		advice  string
	}{
		"that isn't there": {func(*world, []byte) {}, ReasonAbsent,
			"Secret payments/eu doesn't exist. Create it from a kubeconfig of the closed form: " + create},
		"that the hub may not read": {func(w *world, _ []byte) { w.secrets.forbidden["eu"] = true }, ReasonForbidden,
			"Secret payments/eu may not be read by the hub. Let its ServiceAccount get this one Secret: " +
				"kubectl create role cellcast-eu -n payments --verb=get --resource=secrets --resource-name=eu && " +
				"kubectl create rolebinding cellcast-eu -n payments --role=cellcast-eu --serviceaccount=cellcast-system:cellcast-hub"},
		"that the API server can't serve": {func(w *world, _ []byte) { w.secrets.down = true }, ReasonUnreachable,
			"Secret payments/eu can't be read, for the hub's API server didn't serve it. The hub tries again; where that lasts, tell its operator."},
		"of another type": {func(w *world, good []byte) {
			w.secrets.put("eu", &corev1.Secret{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"kubeconfig": good}})
		}, ReasonMalformed,
			"Secret payments/eu isn't of type cellcast.io/kubeconfig, and no other is read. Its type can't be changed, so create another for the kubeconfig and name that: " + create},
		"with another key": {func(w *world, good []byte) {
			w.secrets.put("eu", &corev1.Secret{Type: kubeconfigType, Data: map[string][]byte{"config": good}})
		}, ReasonMalformed, "Secret payments/eu must have the key kubeconfig and no other. Delete it and create it anew: " + create},
		"with a key too many": {func(w *world, good []byte) {
			w.secrets.put("eu", &corev1.Secret{Type: kubeconfigType, Data: map[string][]byte{"kubeconfig": good, "canary": good}})
		}, ReasonMalformed, "Secret payments/eu must have the key kubeconfig and no other. Delete it and create it anew: " + create},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.prepare(w, w.file(t, server, oldToken))
			connection, err := w.Load(t.Context(), secretRef(uidA, "eu"))
			unavailable, ok := errors.AsType[*Unavailable](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if unavailable.Reason != test.reason {
				t.Errorf("the reason is %s", unavailable.Reason)
			}
			if diff := cmp.Diff(test.advice, unavailable.Advice()); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(err.Error()+unavailable.Advice(), "canary") {
				t.Errorf("the error has a value in it: %v", err)
			}
			if connection.Server != "" || w.onDisk(t) != "" {
				t.Errorf("something came of it: %+v, %s", connection, w.onDisk(t))
			}
			if diff := cmp.Diff([]string{"failed " + addressA + " Secret payments/eu"}, w.trail.all(t)); diff != "" {
				t.Error(diff)
			}
			if _, err := w.Token(t.Context(), addressA); !errors.Is(err, ErrNotLoaded) {
				t.Errorf("Token gives %v", err)
			}
		})
	}
}

func TestAFileThatTheParserRefuses(t *testing.T) {
	tests := map[string]struct {
		file func(good string) string
		rule kubeconfig.Rule
	}{
		"a plugin": {func(good string) string {
			return strings.Replace(good, "token: \""+oldToken+"\"", "exec: {command: canary}", 1)
		}, kubeconfig.Exec},
		// The hub permits no loopback here, by the policy that it was given.
		"an address that isn't permitted": {func(good string) string { return strings.Replace(good, "api.acme.example", "127.0.0.1", 1) }, kubeconfig.AddressDenied},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.secrets.put("eu", &corev1.Secret{Type: registryv1alpha1.SecretTypeKubeconfig,
				Data: map[string][]byte{"kubeconfig": []byte(test.file(string(w.file(t, server, oldToken))))}})
			_, err := w.Load(t.Context(), secretRef(uidA, "eu"))
			refused, ok := errors.AsType[*kubeconfig.Error](err)
			if !ok || refused.Rule != test.rule || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff([]string{"failed " + addressA + " Secret payments/eu"}, w.trail.all(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARowMustNameOneSource(t *testing.T) {
	w := newWorld(t)
	w.put(t, "eu", server, oldToken)
	none, both := secretRef(uidA, "eu"), secretRef(uidA, "eu")
	none.Source.SecretRef = nil
	both.Source.VaultRef = &registryv1alpha1.TargetVaultRef{Path: "users/alice/eu"}
	for name, ref := range map[string]Ref{"none": none, "both": both} {
		_, err := w.Load(t.Context(), ref)
		if u, ok := errors.AsType[*Unavailable](err); !ok || u.Reason != ReasonNoSource {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := w.secrets.count("eu"); got != 0 {
		t.Error("a source was read all the same")
	}
}

func TestWhatIsNotOnRecordIsNotUsed(t *testing.T) {
	w := newWorld(t)
	w.put(t, "eu", server, oldToken)
	w.trail.lose(true)
	if connection, err := w.Load(t.Context(), secretRef(uidA, "eu")); err == nil || connection.Server != "" {
		t.Errorf("got %+v, %v", connection, err)
	}
	if got := w.onDisk(t); got != "" {
		t.Errorf("there is %s", got)
	}
	w.trail.lose(false)
	w.mustLoad(t, secretRef(uidA, "eu"))
	w.put(t, "eu", server, newToken)
	w.trail.lose(true)
	if !w.Reject(addressA, secret.New(oldToken)) {
		t.Fatal("the token isn't looked for")
	}
	if got, err := w.Token(t.Context(), addressA); err == nil || !got.IsZero() {
		t.Errorf("got a token of a read that isn't on record, %v", err)
	}
	if diff := cmp.Diff([]string{"allowed " + addressA + " Secret payments/eu"}, w.trail.all(t)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAnOwnerTookAwayIsntKept(t *testing.T) {
	tests := map[string]struct {
		change func(w *world)
		ref    Ref
		kept   bool
	}{
		"a Secret that was deleted":              {func(w *world) { delete(w.secrets.held, "eu") }, secretRef(uidA, "eu"), false},
		"a Role that was taken back":             {func(w *world) { w.secrets.forbidden["eu"] = true }, secretRef(uidA, "eu"), false},
		"a file that is refused":                 {func(w *world) { w.secrets.held["eu"].Data["kubeconfig"] = []byte("x") }, secretRef(uidA, "eu"), false},
		"an API server that is away":             {func(w *world) { w.secrets.down = true }, secretRef(uidA, "eu"), true},
		"a trail that is full":                   {func(w *world) { w.trail.lost = true }, secretRef(uidA, "eu"), true},
		"another source, that can't be read now": {func(w *world) { w.secrets.down = true }, secretRef(uidA, "us"), false},
		"another owner, while the source is away": {func(w *world) { w.secrets.down = true }, func() Ref {
			ref := secretRef(uidA, "eu")
			ref.Owner.User = "bob"
			return ref
		}(), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(t, "eu", server, oldToken)
			w.mustLoad(t, secretRef(uidA, "eu"))
			test.change(w)
			_, loadErr := w.Load(t.Context(), test.ref)
			if loadErr == nil {
				t.Fatal("it was loaded")
			}
			_, err := w.Token(t.Context(), addressA)
			if kept := err == nil && w.onDisk(t) == string(uidA); kept != test.kept {
				t.Errorf("kept: %t, %v, on disk: %s", kept, err, w.onDisk(t))
			}
			if !test.kept && w.onDisk(t) != "" {
				t.Errorf("on disk: %s", w.onDisk(t))
			}
		})
	}
}

func TestATokenThatCantBeWrittenIsntGiven(t *testing.T) {
	w := newWorld(t)
	w.put(t, "eu", server, oldToken)
	w.mustLoad(t, secretRef(uidA, "eu"))
	w.put(t, "eu", "https://api.elsewhere.example", newToken)
	if err := os.MkdirAll(filepath.Join(w.dir, "."+string(uidA), "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Load(t.Context(), secretRef(uidA, "eu")); err == nil {
		t.Error("it was loaded")
	}
	if got, err := w.Token(t.Context(), addressA); err == nil || !strings.Contains(err.Error(), "writing the token") {
		t.Errorf("Token gives %s, %v", got.Reveal(), err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, string(uidA))); err == nil {
		t.Error("the old file is still there")
	}
}

func TestForgetLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.put(t, "eu", server, oldToken)
	w.mustLoad(t, secretRef(uidA, "eu"))
	w.mustLoad(t, secretRef(uidB, "eu"))
	for range 2 {
		if err := w.Forget(uidA); err != nil {
			t.Error(err)
		}
	}
	if got := w.onDisk(t); got != string(uidB) {
		t.Errorf("there is %s", got)
	}
	if _, err := w.Token(t.Context(), addressA); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("got %v", err)
	}
	if w.Reject(addressA, secret.New(oldToken)) {
		t.Error("another token is promised")
	}
	w.wantToken(t, addressB, oldToken)
	if len(w.held) != 1 {
		t.Errorf("%d are remembered", len(w.held))
	}
}

func TestATargetForgottenWhileItWasReadLeavesNothing(t *testing.T) {
	tests := map[string]func(w *world) error{
		"forgotten": func(w *world) error { return w.Forget(uidA) },
		"closed":    func(w *world) error { return w.Close() },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(t, "eu", server, oldToken)
			slow := &slowSecrets{Secrets: w.secrets, asked: make(chan struct{}), release: make(chan struct{})}
			w.options.Secrets = slow
			loaded := make(chan error)
			go func() {
				_, err := w.Load(t.Context(), secretRef(uidA, "eu"))
				loaded <- err
			}()
			<-slow.asked
			if err := end(w); err != nil {
				t.Error(err)
			}
			close(slow.release)
			if err := <-loaded; err == nil {
				t.Error("it was loaded")
			}
			if got := w.onDisk(t); got != "" {
				t.Errorf("there is %s", got)
			}
		})
	}
}

type slowSecrets struct {
	Secrets
	asked, release chan struct{}
}

func (s *slowSecrets) Get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	close(s.asked)
	select {
	case <-s.release:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.Secrets.Get(ctx, namespace, name)
}

func TestACleanEndRemovesAllFiles(t *testing.T) {
	w := newWorld(t)
	w.put(t, "eu", server, oldToken)
	w.mustLoad(t, secretRef(uidA, "eu"))
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := w.onDisk(t); got != "" {
		t.Errorf("there is %s", got)
	}
	if _, err := w.Token(t.Context(), addressA); err == nil {
		t.Error("a token is given after the end")
	}
	if _, err := w.Load(t.Context(), secretRef(uidA, "eu")); err == nil {
		t.Error("a credential is loaded after the end")
	}
	if err := w.Forget(uidA); err != nil {
		t.Error(err)
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	if c, err := New(Options{Dir: filepath.Join(t.TempDir(), "tokens"), Anywhere: true}); c != nil || err == nil {
		t.Error("it was made of nothing")
	}
	if _, err := New(newWorld(t).options); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("two share a folder: %v", err)
	}
}

func TestASourceThatHangsTakesTenSecondsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put(t, "eu", server, oldToken)
		w.put(t, "us", server, oldToken)
		w.mustLoad(t, secretRef(uidA, "eu"))
		w.secrets.do(func() { w.secrets.hung["eu"] = true })
		started := time.Now()
		hung := make(chan error, 2)
		for range 2 { // the second waits for the first
			go func() {
				_, err := w.Load(t.Context(), secretRef(uidA, "eu"))
				hung <- err
			}()
		}
		synctest.Wait()
		w.mustLoad(t, secretRef(uidB, "us"))
		w.wantToken(t, addressB, oldToken)
		w.wantToken(t, addressA, oldToken)
		if err := w.Forget(uidB); err != nil {
			t.Error(err)
		}
		if took := time.Since(started); took != 0 {
			t.Errorf("the others waited %s", took)
		}
		for range 2 {
			if err := <-hung; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(started); took != readTimeout {
			t.Errorf("it took %s", took)
		}
		w.wantToken(t, addressA, oldToken)
	})
}
