package targets

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/secret"
)

// TestNoProxyIsTakenFromTheEnvironment: the defence is the client's transport,
// which has no proxy. The hub is started anew with an environment that names one.
// For loopback Go asks no proxy anyway, so the target is at another address of this
// machine, where nothing listens: a hub that believed its environment would come to
// the proxy all the same.
func TestNoProxyIsTakenFromTheEnvironment(t *testing.T) {
	require(t)
	here, ok := beyondLoopback(t)
	if !ok {
		t.Skip("this machine has no address but those of loopback")
	}
	t.Cleanup(func() { // runs after the environment is as it was
		if err := hub.Hub.Server.Restart(context.Background()); err != nil {
			t.Error(err)
		}
	})
	proxy := newWitness(t, "127.0.0.1:0")
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, "http://"+proxy.address)
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	if err := hub.Hub.Server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	environment := must(os.ReadFile(fmt.Sprintf("/proc/%d/environ", hub.Hub.Server.PID())))(t)
	if !bytes.Contains(environment, []byte("HTTPS_PROXY=http://"+proxy.address)) {
		t.Fatal("the hub's environment names no proxy")
	}

	n := newTenant(t)
	a := newAuthority(t)
	server := "https://" + net.JoinHostPort(here, "6443")
	n.registers("beyond", must(kubeconfig.New(server, a.pem, secret.New("registered")))(t).Encode())
	good := a.target(t, "key-1")
	good.lives(t, func() {})
	n.registers("near", good.kubeconfig(t))

	if row := n.ended("near", ""); row.Status.State != registryv1alpha1.TargetReady {
		t.Errorf("a target on loopback is %s: %s", row.Status.State, row.Status.Failing)
	}
	if row := n.ended("beyond", ""); row.Status.State != registryv1alpha1.TargetUnreachable {
		t.Errorf("a target beyond it is %s: %s", row.Status.State, row.Status.Failing)
	}
	proxy.none(t, "the proxy of the environment")
}

// beyondLoopback is an address of this machine that isn't loopback, and that a
// target may have.
func beyondLoopback(t *testing.T) (string, bool) {
	t.Helper()
	for _, addr := range must(net.InterfaceAddrs())(t) {
		if network, ok := addr.(*net.IPNet); ok && network.IP.To4() != nil && network.IP.IsGlobalUnicast() {
			return network.IP.String(), true
		}
	}
	return "", false
}
