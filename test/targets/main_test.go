// Package targets runs brought targets on real control planes: a hub, a cell of
// its fleet, and a cluster that the fleet doesn't manage, with a real node where
// the machine can run one.
//
// One fleet serves all tests. Each brings its own namespace at the hub and its
// own on the brought cluster.
package targets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"cellcast.io/cellcast/pkg/custody/vault/vaulttest"
	"cellcast.io/cellcast/test/fleet"
	"cellcast.io/cellcast/test/world"
)

// hub is the fleet of all tests; nil where no control plane is built.
var hub *fleet.Fleet

// tokenDir is the hub's --token-dir, on tmpfs; rescan its --target-rescan.
var tokenDir string

const rescan = 10 * time.Second

// vault is where the hub reads vaultRefs.
var vault *vaulttest.Server

func TestMain(m *testing.M) {
	ctrllog.SetLogger(klog.Background())
	code := fleet.Main(m, "targets", func(ctx context.Context, dir string) (f *fleet.Fleet, err error) {
		hub, err = startFleet(ctx, dir)
		return hub, err
	})
	if vault != nil {
		vault.Close()
	}
	_ = os.RemoveAll(tokenDir)
	os.Exit(code)
}

// startFleet starts a hub that takes brought targets on loopback.
func startFleet(ctx context.Context, dir string) (_ *fleet.Fleet, err error) {
	if tokenDir, err = os.MkdirTemp("/dev/shm", "cellcast-tokens-"); err != nil {
		return nil, fmt.Errorf("a folder on tmpfs: %w", err)
	}
	vault = vaulttest.Start()
	vaultCA := filepath.Join(dir, "vault-ca.pem")
	if err = os.WriteFile(vaultCA, vault.CA(), 0o600); err != nil {
		return nil, err
	}
	node := world.HaveNode()
	if node != nil {
		fmt.Println("tests with real pods are skipped:", node)
	}
	args := []string{
		"-v=2", "--token-dir=" + tokenDir, "--target-rescan=" + rescan.String(),
		"--target-allow-addresses=127.0.0.0/8", "--target-deny-addresses=" + world.PodRange, "--target-ports=1024-65535",
		"--canary-image=" + world.CanaryImage,
		"--vault-address=" + vault.Address(), "--vault-ca-file=" + vaultCA,
	}
	return fleet.Start(ctx, fleet.Options{
		Dir:       dir,
		Cells:     []world.CellOptions{{Name: "prod-eu", Labels: map[string]string{"env": "prod"}}},
		Brought:   []world.CellOptions{{Name: "acme", Node: node == nil, Controllers: true}},
		Mint:      []string{"payments/deployer"},
		HubArgs:   args,
		AgentArgs: []string{"--interval=3s"},
		IngestCA:  true,
	})
}

// acme is the brought cluster.
func acme() *world.Cell { return hub.Cell("acme") }

func require(t *testing.T) {
	t.Helper()
	if hub == nil {
		t.Skip("no control plane is built: run make kube")
	}
}

// requireNode skips what needs pods that run.
func requireNode(t *testing.T) {
	t.Helper()
	require(t)
	if acme().Node == nil {
		t.Skip(world.HaveNode())
	}
}

// unique is a name for what a test makes, which no other test has.
func unique(t *testing.T) string {
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()))
	if len(name) > 40 {
		name = name[len(name)-40:]
	}
	return strings.Trim(name, "-")
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	if err := hub.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
	}
}

// must is for what a test can't go on without.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
