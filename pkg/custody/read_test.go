package custody

import (
	"bytes"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/secret"
)

func TestACredentialInVault(t *testing.T) {
	w := withVault(t)
	w.vault.Put("users/alice/prod/eu", map[string]any{"kubeconfig": string(w.file(t, server, oldToken)), "other": string(w.file(t, server, newToken))})
	got := w.mustLoad(t, vaultRef(uidA, "users/alice/prod/eu", ""))
	if diff := cmp.Diff(Connection{Address: addressA, Server: server, CAData: w.ca, Version: "vault:1"}, got); diff != "" {
		t.Error(diff)
	}
	w.wantToken(t, addressA, oldToken)
	w.mustLoad(t, vaultRef(uidB, "users/alice/prod/eu", "other"))
	w.wantToken(t, addressB, newToken)

	w.vault.Put("users/alice/prod/eu", map[string]any{"kubeconfig": string(w.file(t, server, newToken))})
	if !w.Reject(addressA, secret.New(oldToken)) {
		t.Error("the token isn't looked for")
	}
	w.wantToken(t, addressA, newToken)
	want := []string{"allowed " + addressA + " Vault users/alice/prod/eu", "allowed " + addressB + " Vault users/alice/prod/eu", "allowed " + addressA + " Vault users/alice/prod/eu"}
	if diff := cmp.Diff(want, w.trail.all(t)); diff != "" {
		t.Error(diff)
	}
}

func TestASecretInVaultThatDoesntServe(t *testing.T) {
	tests := map[string]struct {
		prepare func(w *world)
		path    string
		reason  Reason
		advice  string
		asked   bool
	}{
		"that isn't there": {func(*world) {}, "users/alice/eu", ReasonAbsent,
			"Vault has no secret at users/alice/eu, or its newest version was deleted. Put the kubeconfig there: vault kv put -mount=MOUNT users/alice/eu kubeconfig=@FILE, with the mount that the hub's operator tells.", true},
		"without the key": {func(w *world) { w.vault.Put("users/alice/eu", map[string]any{"canary": "canary"}) }, "users/alice/eu", ReasonMalformed,
			"The secret at users/alice/eu has no text under the key kubeconfig. Put the kubeconfig there: vault kv patch -mount=MOUNT users/alice/eu kubeconfig=@FILE", true},
		"that the policy denies": {func(w *world) { w.vault.Deny(true) }, "users/alice/eu", ReasonForbidden,
			"Vault forbids the hub to read users/alice/eu. The hub's operator can mend its policy: it needs read below MOUNT/data/users/ and MOUNT/data/groups/.", true},
		"in a Vault that is sealed": {func(w *world) { w.vault.Seal(true) }, "users/alice/eu", ReasonUnreachable,
			"Vault is sealed, or doesn't answer. The hub tries again; where that lasts, tell its operator.", true},
		"in a Vault that doesn't know the hub": {func(w *world) {
			w.vault.Answer(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusForbidden) })
		}, "users/alice/eu", ReasonLogin,
			"The hub can't log in to Vault. Its operator has to look at the hub's log and at the role of the Kubernetes auth method.", true},
		"in what isn't a Vault": {func(w *world) {
			w.vault.Answer(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("canary")) })
		}, "users/alice/eu", ReasonUnreachable,
			"Vault's answer isn't that of a KV version 2 engine. The hub's operator has to look at its log, and at --vault-address and --vault-mount.", true},
		"of somebody else": {func(w *world) { w.vault.Put("users/bob/eu", map[string]any{"kubeconfig": "canary"}) }, "users/bob/eu", ReasonPath,
			"The path of the vaultRef isn't the owner's: the path must begin with users/alice/. Set spec.credentialRef.vaultRef.path.", false},
		"of somebody else, by climbing": {func(w *world) { w.vault.Put("users/bob/eu", map[string]any{"kubeconfig": "canary"}) }, "users/alice/../bob/eu", ReasonPath,
			"The path of the vaultRef isn't the owner's: what follows users/alice/ must be letters, digits and ._~@:+=- between single slashes, no segment of dots alone. Set spec.credentialRef.vaultRef.path.", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := withVault(t)
			test.prepare(w)
			_, err := w.Load(t.Context(), vaultRef(uidA, test.path, ""))
			unavailable, ok := errors.AsType[*Unavailable](err)
			if !ok || unavailable.Reason != test.reason || strings.Contains(err.Error(), "canary") {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(test.advice, unavailable.Advice()); diff != "" {
				t.Error(diff)
			}
			if asked := len(w.vault.Logins())+len(w.vault.Seen()) > 0; asked != test.asked {
				t.Errorf("Vault was asked: %t", asked)
			}
			if diff := cmp.Diff([]string{"failed " + addressA + " Vault " + test.path}, w.trail.all(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAHubWithoutVault(t *testing.T) {
	w := newWorld(t)
	_, err := w.Load(t.Context(), vaultRef(uidA, "users/alice/eu", ""))
	if u, ok := errors.AsType[*Unavailable](err); !ok || u.Reason != ReasonNoVault || u.Advice() == "" {
		t.Errorf("got %v", err)
	}
}

func TestEveryReasonSaysWhetherItMayClear(t *testing.T) {
	got := map[Reason]bool{}
	for _, r := range Reasons() {
		got[r] = r.MayClear()
	}
	want := map[Reason]bool{ReasonNoSource: false, ReasonAbsent: false, ReasonForbidden: false, ReasonMalformed: false,
		ReasonPath: false, ReasonNoVault: false, ReasonLogin: true, ReasonUnreachable: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// client-go logs the bodies of answers at a high level.
func TestNoLogLevelShowsASecret(t *testing.T) {
	var asked []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"eu","resourceVersion":"7"},"type":"cellcast.io/kubeconfig","stringData":{"a":"canary"},"data":{"kubeconfig":"Y2FuYXJ5"}}`))
	}))
	defer api.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}

	var log bytes.Buffer
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", "10")
	_ = flags.Set("logtostderr", "false")
	klog.SetOutput(&log)
	defer func() {
		_ = flags.Set("v", "0")
		_ = flags.Set("logtostderr", "true")
	}()
	got, err := SecretsOf(client).Get(t.Context(), "payments", "eu")
	klog.Flush()
	if err != nil || string(got.Data[registryv1alpha1.SecretKeyKubeconfig]) != "canary" || got.ResourceVersion != "7" {
		t.Fatalf("got a Secret of %d keys, %v", len(got.Data), err)
	}
	if strings.Contains(log.String(), "canary") || strings.Contains(log.String(), "Y2FuYXJ5") {
		t.Errorf("the log has it:\n%s", log.String())
	}
	// By its name, and without a resourceVersion, which lets a cache answer.
	if diff := cmp.Diff([]string{"GET /api/v1/namespaces/payments/secrets/eu"}, asked); diff != "" {
		t.Error(diff)
	}
}
