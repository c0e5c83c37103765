package cli_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellcast.io/cellcast/pkg/cli"
)

// issuedToken is what the target issues to the hub's ServiceAccount.
const issuedToken = "issued.SECRET.token"

// owner is the owner of a namespace on a target, with a shell.
type owner struct {
	t           *testing.T
	hub, target *fakeAPI
	dir         string
	clock       *clock
	// sleep is called where a run waits.
	sleep func()
	// window is the owner's terminal; nil is none.
	window func() (int, int)
	// shown is all that the runs printed.
	shown strings.Builder
}

func newOwner(t *testing.T) *owner {
	t.Helper()
	o := &owner{t: t, hub: newFakeAPI(t), target: newFakeAPI(t), dir: t.TempDir(), clock: newClock(), sleep: func() {}}
	// The target's controller manager comes a little later.
	looks := 0
	o.target.reading = func(at string, got object) {
		if got["type"] != "kubernetes.io/service-account-token" {
			return
		}
		if looks++; looks == 3 {
			got["data"] = object{"token": base64.StdEncoding.EncodeToString([]byte(issuedToken)), "ca.crt": "Q0E="}
		}
	}
	o.file("hub.pem", o.hub.ca())
	o.file("target.pem", o.target.ca())
	o.file("hub.kubeconfig", kubeconfigFor("hub", o.hub.URL, "payments", "certificate-authority: hub.pem", "{token: "+ownToken+"}"))
	// Nothing but a test may be shown a token.
	t.Cleanup(func() {
		if strings.Contains(o.shown.String(), "SECRET") {
			t.Errorf("a token was printed:\n%s", o.shown.String())
		}
	})
	return o
}

func kubeconfigFor(name, server, namespace, cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: %[1]s
contexts: [{name: %[1]s, context: {cluster: %[1]s, user: me, namespace: %[3]s}}, {name: other, context: {cluster: %[1]s, user: other}}]
clusters: [{name: %[1]s, cluster: {server: "%[2]s", %[4]s}}]
users: [{name: me, user: %[5]s}, {name: other, user: {token: another.SECRET.one}}]
`, name, server, namespace, cluster, user)
}

// kubeconfig writes one for the target, whose user gets in this way.
func (o *owner) kubeconfig(user string) string {
	return o.file("target.kubeconfig", kubeconfigFor("eu", o.target.URL, "elsewhere", "certificate-authority: target.pem", user))
}

func (o *owner) file(name, content string) string {
	o.t.Helper()
	path := filepath.Join(o.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		o.t.Fatal(err)
	}
	return path
}

// register registers target eu by the kubeconfig.
func (o *owner) register(kubeconfig string, args ...string) answerOf {
	return o.run(append([]string{"target", "register", "eu", "-f", kubeconfig, "--namespace", "shop",
		"--hub-kubeconfig", filepath.Join(o.dir, "hub.kubeconfig")}, args...)...)
}

// ask runs a command that goes to the hub.
func (o *owner) ask(args ...string) answerOf {
	return o.run(append(args, "--kubeconfig", filepath.Join(o.dir, "hub.kubeconfig"))...)
}

func (o *owner) run(args ...string) answerOf {
	o.t.Helper()
	var out, err strings.Builder
	code := cli.Run(o.t.Context(), cli.Env{
		Args: append([]string{"cellcast"}, args...), Out: &out, Err: &err,
		Getenv: func(string) string { return "" },
		Now:    o.clock.now, Sleep: o.wait, Window: o.window,
	})
	o.shown.WriteString(out.String() + err.String())
	return answerOf{code, out.String(), o.plain(err.String())}
}

func (o *owner) wait(ctx context.Context, d time.Duration) error {
	o.sleep()
	return o.clock.sleep(ctx, d)
}

// plain has words in the place of what differs between runs.
func (o *owner) plain(s string) string {
	return strings.NewReplacer(o.hub.URL, "HUB", o.target.URL, "TARGET", o.dir, "DIR").Replace(s)
}

// stored is the kubeconfig that the hub has of the target.
func (o *owner) stored() string {
	o.t.Helper()
	var secret struct{ Data map[string][]byte }
	content, err := json.Marshal(o.hub.at("/api/v1/namespaces/payments/secrets/eu-kubeconfig"))
	if err != nil {
		o.t.Fatal(err)
	}
	if err := json.Unmarshal(content, &secret); err != nil {
		o.t.Fatal(err)
	}
	return string(secret.Data["kubeconfig"])
}
