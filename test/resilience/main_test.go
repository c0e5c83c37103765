// Package resilience takes things away from a hub of several replicas while
// pipelines ask it: a replica, the leader, a cell's API server, the hub's etcd.
// What a pipeline sees of it, after the retries of its own client, is what
// counts.
//
// One fleet serves all tests: three replicas behind a balancer, a store of the
// hub's own, and three cells with an agent each. It takes the whole machine, so
// nothing else should run beside it.
package resilience

import (
	"context"
	"errors"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/test/fleet"
	"cellcast.io/cellcast/test/world"
)

// hub is the fleet of all tests; nil where no control plane is built.
var hub *fleet.Fleet

const (
	// repositoryID is that of the pipelines, workload what they deploy.
	repositoryID = "4711"
	workload     = "payments/api"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(klog.Background())
	os.Exit(fleet.Main(m, "resilience", func(ctx context.Context, dir string) (f *fleet.Fleet, err error) {
		hub, err = start(ctx, dir)
		return hub, err
	}))
}

// start starts the fleet, with a policy that lets the pipelines reach every cell.
func start(ctx context.Context, dir string) (*fleet.Fleet, error) {
	production := map[string]string{"env": "prod"}
	f, err := fleet.Start(ctx, fleet.Options{
		Dir:      dir,
		Cells:    []world.CellOptions{{Name: "eu", Labels: production}, {Name: "us", Labels: production}, {Name: "ap", Labels: production}},
		Replicas: 3, HubEtcd: true,
		Mint:      []string{"payments/deployer"},
		HubArgs:   []string{"--staleness-window=12s"},
		AgentArgs: []string{"--interval=3s"},
	})
	if err != nil {
		return f, err
	}
	policies := f.Admin.RegistryV1alpha1().PlacementPolicies()
	row, err := policies.Create(ctx, &registryv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "payments"},
		Spec: registryv1alpha1.PlacementPolicySpec{
			Subjects: []registryv1alpha1.PolicySubject{{
				Issuer: f.CI.URL(),
				Claims: map[string]registryv1alpha1.ClaimValue{"repository_id": repositoryID},
			}},
			ClusterSelector: metav1.LabelSelector{MatchLabels: production},
			Credential:      registryv1alpha1.CredentialScope{Namespace: "payments", ServiceAccountName: "deployer"},
		},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = f.AllowMetrics(ctx) // for as long as the fleet is there
	}
	if err == nil {
		err = f.Eventually(ctx, "the hub has read the policy", func(ctx context.Context) error {
			now, err := policies.Get(ctx, row.Name, metav1.GetOptions{})
			if err == nil && now.Status.ObservedGeneration != now.Generation {
				err = errors.New("its status isn't there yet")
			}
			return err
		})
	}
	if err != nil {
		return f, errors.Join(err, f.Stop())
	}
	return f, nil
}

func require(t *testing.T) {
	t.Helper()
	if hub == nil {
		t.Skip("no control plane is built: run make kube")
	}
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	if err := hub.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
	}
}
