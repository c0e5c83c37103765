package targets

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/kubeconfig"
)

// escapes are kubeconfigs that would have the hub do more than talk to one server
// with one token, by what they'd have it do. Each has a bait: what the hub would
// run, read or connect to is the test's own.
func escapes(t *testing.T, ran string, bait *fakeTarget, proxy, stranger *witness) map[string]string {
	t.Helper()
	ca := base64.StdEncoding.EncodeToString(bait.ca.pem)
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(caFile, bait.ca.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	inline := "certificate-authority-data: " + ca
	user := "token: " + bait.bearer
	return map[string]string{
		"runs a program": file(bait.URL, inline, fmt.Sprintf(`exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch, args: [%q]}`, ran)),
		"shows the hub's own projected token to somebody": file(bait.URL, inline, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"),
		"reads a file of the hub's":                       file(bait.URL, "certificate-authority: "+caFile, user),
		"goes through a proxy":                            file(bait.URL, inline+"\n    proxy-url: http://"+proxy.address, user),
		"believes any certificate":                        file("https://"+stranger.address, "insecure-skip-tls-verify: true", user),
		"asks the cloud who the hub is":                   file("https://169.254.169.254:6443", inline, user),
		"asks the cloud, in a form of IPv6":               file("https://[::ffff:169.254.169.254]:6443", inline, user),
		"asks the cloud through NAT64":                    file("https://[64:ff9b::169.254.169.254]:6443", inline, user),
		"asks what listens on the hub's own IPv6":         file("https://[::1]:"+port(stranger.address), inline, user),
	}
}

// file is a kubeconfig that is of the closed form but for what is put into it.
func file(server, cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: acme
clusters:
- name: acme
  cluster:
    server: %q
    %s
users:
- name: team
  user:
    %s
contexts:
- name: acme
  context: {cluster: acme, user: team}
`, server, cluster, user)
}

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// TestAnEscapeIsRefusedAtAdmission: the defence is the webhook on Secrets.
func TestAnEscapeIsRefusedAtAdmission(t *testing.T) {
	n := newTenant(t)
	bait := newAuthority(t).target(t, "key-1")
	attempts := escapes(t, "/nowhere", bait, newWitness(t, "127.0.0.1:0"), newWitness(t, "[::1]:0"))
	for _, name := range []string{"Exec.12.of-eks", "TokenFile.12.alone", "TokenFile.13.beside-the-token", "CertificateAuthority.8.alone", "CertificateAuthority.9.beside-the-data",
		"ProxyURL.9.http", "InsecureSkipTLS.8.true", "AddressDenied.7.link-local-metadata", "AddressDenied.7.ipv6-loopback", "AddressDenied.7.nat64-metadata", "AddressDenied.7.6to4",
		"ServerHost.7.ipv6-mapped", "ServerHost.7.decimal-ipv4", "ServerUserinfo.7.looks-like-the-host"} {
		attempts[name] = string(must(os.ReadFile("../../pkg/kubeconfig/testdata/" + name + ".yaml"))(t))
	}
	for sentence, text := range attempts {
		t.Run(sentence, func(t *testing.T) {
			_, err := n.core.CoreV1().Secrets(n.name).Create(t.Context(), n.kept("escape", []byte(text)), metav1.CreateOptions{})
			if !apierrors.IsInvalid(err) {
				t.Fatalf("the answer is %v", err)
			}
			for _, refused := range kubeconfig.Refusals([]byte(text)) {
				if !strings.Contains(err.Error(), refused.Error()) {
					t.Errorf("the answer lacks %q: %v", refused, err)
				}
			}
			if strings.Contains(err.Error(), bait.bearer) || strings.Contains(err.Error(), "canary-token") {
				t.Error("the answer quotes the token")
			}
		})
	}
	if secrets := must(n.core.CoreV1().Secrets(n.name).List(t.Context(), metav1.ListOptions{}))(t); len(secrets.Items) != 0 {
		t.Errorf("%d Secrets were stored", len(secrets.Items))
	}
}

// TestAnEscapePastAdmissionIsRefused: the defence is the parser, as custody reads
// the Secret each time. The webhook sees nothing of this namespace.
func TestAnEscapePastAdmissionIsRefused(t *testing.T) {
	n := newTenant(t)
	ran := filepath.Join(t.TempDir(), "ran")
	bait := newAuthority(t).target(t, "key-1")
	proxy, stranger := newWitness(t, "127.0.0.1:0"), newWitness(t, "[::1]:0")
	attempts := escapes(t, ran, bait, proxy, stranger)
	n.unguarded(attempts["runs a program"])

	names := map[string]string{}
	for sentence, text := range attempts {
		names[sentence] = fmt.Sprintf("escape-%d", len(names))
		n.registers(names[sentence], []byte(text))
	}
	for sentence, text := range attempts {
		t.Run(sentence, func(t *testing.T) {
			row := n.ended(names[sentence], "")
			credential := check(t, row, registryv1alpha1.CheckCredential)
			if row.Status.State != registryv1alpha1.TargetFailed || credential.Result != registryv1alpha1.CheckFailed {
				t.Fatalf("it's %s: %+v", row.Status.State, row.Status.Checks)
			}
			refused := kubeconfig.Refusals([]byte(text))
			if len(refused) > 0 && !strings.Contains(credential.Message, refused[0].Error()) {
				t.Errorf("the message is %q, want %q in it", credential.Message, refused[0])
			}
			if strings.Contains(credential.Message, bait.bearer) {
				t.Error("the message quotes the token")
			}
		})
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the program was run: %v", err)
	}
	if n := len(bait.came()); n != 0 {
		t.Errorf("the server of a refused kubeconfig was asked %d times", n)
	}
	proxy.none(t, "the proxy of a kubeconfig")
	stranger.none(t, "a server with any certificate, and one on the hub's own IPv6")
}

// unguarded takes the tenant's namespace out of the webhook's sight for the test,
// as an administrator can, and returns when this file passes.
func (n tenant) unguarded(file string) {
	n.t.Helper()
	webhooks := clientset(n.t, hub.Hub.Admin).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	now := must(webhooks.Get(n.t.Context(), "cellcast-hub", metav1.GetOptions{}))(n.t)
	i := slices.IndexFunc(now.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == "secrets.cellcast.io" })
	if i < 0 {
		n.t.Fatal("there is no webhook on Secrets")
	}
	replace := func(ctx context.Context, selector *metav1.LabelSelector) error {
		patch, err := json.Marshal([]map[string]any{
			{"op": "test", "path": fmt.Sprintf("/webhooks/%d/name", i), "value": "secrets.cellcast.io"},
			{"op": "add", "path": fmt.Sprintf("/webhooks/%d/namespaceSelector", i), "value": selector},
		})
		if err != nil {
			return err
		}
		_, err = webhooks.Patch(ctx, now.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
		return err
	}
	others := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{n.name}},
	}}
	if err := replace(n.t.Context(), others); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := replace(context.Background(), now.Webhooks[i].NamespaceSelector); err != nil {
			n.t.Errorf("the webhook stays blind: %v", err)
		}
	})
	within(n.t, time.Minute, "the webhook is blind", func(ctx context.Context) error {
		_, err := n.core.CoreV1().Secrets(n.name).Create(ctx, n.kept("dry", []byte(file)), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}
