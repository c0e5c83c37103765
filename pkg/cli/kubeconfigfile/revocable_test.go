package kubeconfigfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli/kubeconfigfile"
)

const nonce = "abcdefghijklmnopqrstuv"

var revokesAt = metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 5, 0, time.UTC))

// revocable is a kubeconfig whose credential can be revoked.
func revocable(t *testing.T) []byte {
	t.Helper()
	cell, credential := answer()
	credential.RevokesAt, credential.RevocationNonce = &revokesAt, nonce
	content, err := kubeconfigfile.KubeconfigOf(cell, credential, kubeconfigfile.Origin{Workload: "payments/api", RequestID: "8b1b0c98"})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestARevocableKubeconfigCarriesWhatRevokingTakes(t *testing.T) {
	want := `- context:
    cluster: eu-1
    extensions:
    - extension:
        cell: eu-1
        namespace: payments
        requestID: 8b1b0c98
        revocationNonce: abcdefghijklmnopqrstuv
        revokesAt: "2026-01-02T03:00:05Z"
        workload: payments/api
      name: cellcast.io
    namespace: payments
    user: payments/deployer
  name: eu-1
`
	if content := string(revocable(t)); !strings.Contains(content, want) {
		t.Errorf("the context isn't\n%s\nin\n%s", want, content)
	}
}

// What kubectl config does: it loads the file, and writes it whole.
func TestWhatRevokingTakesIsReadBack(t *testing.T) {
	want := kubeconfigfile.Revocation{Cell: "eu-1", Namespace: "payments", RevocationNonce: nonce,
		RevokesAt: revokesAt, Workload: "payments/api", RequestID: "8b1b0c98"}
	for name, rewrite := range map[string]func(t *testing.T, path string){
		"as it was written": func(*testing.T, string) {},
		"after kubectl changed its namespace": func(t *testing.T, path string) {
			config, err := clientcmd.LoadFromFile(path)
			if err != nil {
				t.Fatal(err)
			}
			config.Contexts["eu-1"].Namespace = "other"
			if err := clientcmd.WriteToFile(*config, path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cell.kubeconfig")
			if err := reserve(t, path).Commit(revocable(t)); err != nil {
				t.Fatal(err)
			}
			rewrite(t, path)
			got, err := kubeconfigfile.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			got.RevokesAt = metav1.NewTime(got.RevokesAt.UTC())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	const notRevocable = "PATH holds no credential of cellcast's that can be revoked: a policy makes one so (spec.credential.revocable), and any other ends by itself"
	change := func(from, to string) func(string) string {
		return func(s string) string { return strings.Replace(s, from, to, 1) }
	}
	for name, test := range map[string]struct {
		change func(string) string
		want   string
	}{
		"an empty file":                     {func(string) string { return "" }, "PATH is no kubeconfig"},
		"another kind":                      {change("kind: Config", "kind: Secret"), "PATH is no kubeconfig"},
		"a field that kubeconfigs have not": {change("kind: Config", "kind: Config\ntoken: SECRET"), "PATH is no kubeconfig"},
		"a key that is there twice":         {change("kind: Config", "kind: Config\nkind: Config"), "PATH is no kubeconfig"},
		"a token that is no YAML":           {change("token: ", "token: [SECRET "), "PATH is no kubeconfig"},
		"a file that is too long":           {func(s string) string { return s + strings.Repeat("#", 1<<20) }, "PATH is longer than 1048576 bytes: it's no kubeconfig of cellcast's"},
		"a credential that isn't revocable": {change("name: cellcast.io", "name: acme.io"), notRevocable},
		"an extension of another context":   {change("current-context: eu-1", "current-context: eu-2"), notRevocable},
		"a field that the extension has not": {change("workload: ", "wörkload: "),
			"PATH has an extension cellcast.io that this version can't read: update cellcast"},
		"a nonce that can't be one": {change(nonce, "short"),
			"PATH can't be used to revoke: the revocation nonce must be 22 to 64 characters of A-Z, a-z, 0-9, '-' and '_', drawn at random"},
		"a cell that leads out of its path": {change("cell: eu-1", "cell: ../eu-1"), "PATH can't be used to revoke: the name of the cell is wrong"},
		"a namespace that can't be one": {change("        namespace: payments", "        namespace: Payments"),
			"PATH can't be used to revoke: the namespace of the credential is wrong"},
		"an end that is missing": {change("        revokesAt: \"2026-01-02T03:00:05Z\"\n", ""),
			"PATH can't be used to revoke: the time at which the credential ends is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			before := string(revocable(t))
			changed := test.change(before)
			if changed == before {
				t.Fatal("the test changes nothing")
			}
			path := filepath.Join(t.TempDir(), "cell.kubeconfig")
			write(t, path, changed, 0o600)
			_, err := kubeconfigfile.Read(path)
			if want := strings.ReplaceAll(test.want, "PATH", path); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestReadNamesTheMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cell.kubeconfig")
	if _, err := kubeconfigfile.Read(path); err == nil || err.Error() != path+" doesn't exist" {
		t.Errorf("got %v", err)
	}
}

func TestKubeconfigRefusesAnAnswerThatCouldNotBeRevoked(t *testing.T) {
	cell, credential := answer()
	credential.RevokesAt, credential.RevocationNonce = &revokesAt, "short"
	_, err := kubeconfigfile.Kubeconfig(cell, credential)
	want := "in the hub's answer, the revocation nonce must be 22 to 64 characters of A-Z, a-z, 0-9, '-' and '_', drawn at random"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRemoveTouchesNothingElse(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		removed bool
		err     string
	}{
		"a kubeconfig of ours":    {"# Written by cellcast; old\n", true, ""},
		"a kubeconfig of others'": {"apiVersion: v1\n", false, "PATH exists and wasn't written by cellcast: it's left as it is; name another file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cell.kubeconfig")
			write(t, path, test.content, 0o600)
			removed, err := kubeconfigfile.Remove(path)
			if want := strings.ReplaceAll(test.err, "PATH", path); removed != test.removed || (err == nil) != (want == "") || err != nil && err.Error() != want {
				t.Errorf("got %v, %v", removed, err)
			}
			if _, err := os.Stat(path); os.IsNotExist(err) != test.removed {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

func TestAPluginKubeconfigHoldsNoToken(t *testing.T) {
	cell := cellcastv1alpha1.CellReference{Name: "eu-1", Endpoint: "https://eu-1.example.com", CABundle: []byte("PEM")}
	got, err := kubeconfigfile.PluginKubeconfig(cell, "payments", kubeconfigfile.Plugin{
		Command: "cellcast", Args: []string{"credential", "--cell=eu-1"}, InstallHint: "Ask."})
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: UEVN
    server: https://eu-1.example.com
  name: eu-1
contexts:
- context:
    cluster: eu-1
    namespace: payments
    user: cellcast/eu-1
  name: eu-1
current-context: eu-1
kind: Config
users:
- name: cellcast/eu-1
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      args:
      - credential
      - --cell=eu-1
      command: cellcast
      env: null
      installHint: Ask.
      interactiveMode: Never
      provideClusterInfo: true
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPluginKubeconfigRefusesAnAnswerWithoutAnEndpoint(t *testing.T) {
	_, err := kubeconfigfile.PluginKubeconfig(cellcastv1alpha1.CellReference{Name: "eu-1", Endpoint: "http://eu-1.example.com"}, "", kubeconfigfile.Plugin{})
	if want := `the hub's answer has no https endpoint for cell "eu-1"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
