// Package integration runs the hub, its cells and their agents as real
// processes on real control planes and asks them from outside.
//
// One fleet serves all tests, for a fleet takes most of a minute to start. So
// each test brings its own policies, under its own name and for its own
// repository, and leaves the three cells as they were.
package integration

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/fleet"
	"cellcast.io/cellcast/test/world"
)

// hub is the fleet of all tests; nil where no control plane is built.
var hub *fleet.Fleet

// ceiling is the hub's --token-max-ttl.
const ceiling = 45 * time.Minute

// hubAuditLog is the log of the hub's own API server, which holds every answer
// whole: what is sealed must not be in it all the same.
const (
	hubAuditLog  = "cellcast-hub-api-audit.log"
	wholeAnswers = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: RequestResponse}]\n"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(klog.Background())
	os.Exit(fleet.Main(m, "integration", func(ctx context.Context, dir string) (f *fleet.Fleet, err error) {
		hub, err = startFleet(ctx, dir)
		return hub, err
	}))
}

// startFleet starts a fleet whose hub records every answer whole.
func startFleet(ctx context.Context, dir string) (*fleet.Fleet, error) {
	auditPolicy := filepath.Join(dir, "whole.yaml")
	if err := os.WriteFile(auditPolicy, []byte(wholeAnswers), 0o600); err != nil {
		return nil, err
	}
	return fleet.Start(ctx, fleet.Options{
		Dir: dir,
		Cells: []world.CellOptions{
			{Name: "dev-eu", Labels: map[string]string{"env": "dev", "region": "eu"}},
			{Name: "prod-eu", Labels: map[string]string{"env": "prod", "region": "eu"}},
			{Name: "prod-us", Labels: map[string]string{"env": "prod", "region": "us"}},
		},
		Mint:      []string{"payments/deployer", "revocable/deployer"},
		Revocable: []string{"revocable"},
		HubArgs: []string{"--token-max-ttl=" + ceiling.String(), "-v=2",
			"--audit-policy-file=" + auditPolicy, "--audit-log-path=" + filepath.Join(dir, "logs", hubAuditLog)},
		AgentArgs: []string{"--interval=3s"},
	})
}

func require(t *testing.T) {
	t.Helper()
	if hub == nil {
		t.Skip("no control plane is built: run make kube")
	}
}

// unique is a name for what a test makes, which no other test has.
func unique(t *testing.T) string {
	name := strings.ToLower(t.Name())
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, name)
	if len(name) > 40 {
		name = name[len(name)-40:]
	}
	return strings.Trim(name, "-")
}

// policy creates a policy for the pipelines of one repository and removes it
// with the test. It returns once the hub decides by it.
func policy(t *testing.T, repositoryID string, change func(*registryv1alpha1.PlacementPolicySpec)) string {
	t.Helper()
	spec := registryv1alpha1.PlacementPolicySpec{
		Subjects: []registryv1alpha1.PolicySubject{{
			Issuer: hub.CI.URL(),
			Claims: map[string]registryv1alpha1.ClaimValue{"repository_id": registryv1alpha1.ClaimValue(repositoryID)},
		}},
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
		Credential:      registryv1alpha1.CredentialScope{Namespace: "payments", ServiceAccountName: "deployer"},
	}
	if change != nil {
		change(&spec)
	}
	return create(t, spec)
}

func create(t *testing.T, spec registryv1alpha1.PlacementPolicySpec) string {
	t.Helper()
	policies := hub.Admin.RegistryV1alpha1().PlacementPolicies()
	row, err := policies.Create(t.Context(), &registryv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: unique(t) + "-"}, Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := policies.Delete(context.Background(), row.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the hub has read policy "+row.Name, func(ctx context.Context) error {
		now, err := policies.Get(ctx, row.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now.Status.ObservedGeneration != now.Generation || len(now.Status.Conditions) == 0 {
			return errors.New("its status isn't there yet")
		}
		return nil
	})
	return row.Name
}

// register creates a Cluster and removes it with the test.
func register(t *testing.T, row *registryv1alpha1.Cluster) {
	t.Helper()
	clusters := hub.Admin.RegistryV1alpha1().Clusters()
	if _, err := clusters.Create(t.Context(), row, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := clusters.Delete(context.Background(), row.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the hub has read Cluster "+row.Name, func(ctx context.Context) error {
		_, err := hub.Admin.CellcastV1alpha1().Cells().Get(ctx, row.Name, metav1.GetOptions{})
		return err
	})
}

// pipeline is a client of the direct door.
func pipeline(t *testing.T, repositoryID string) versioned.Interface {
	t.Helper()
	client, err := hub.Pipeline(repositoryID)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// user is a client of the hub's API server for a hub user who may create
// placements, by the group that its name is in.
func user(t *testing.T, name string) versioned.Interface {
	t.Helper()
	placers(t, name)
	u, err := hub.Hub.User(name, name)
	if err != nil {
		t.Fatal(err)
	}
	config := u.Config()
	config.WarningHandler = rest.NoWarnings{}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// placers lets the members of a group place. It returns once that counts.
func placers(t *testing.T, group string) {
	t.Helper()
	admin, err := kubernetes.NewForConfig(hub.Hub.Admin.Config())
	if err != nil {
		t.Fatal(err)
	}
	bindings := admin.RbacV1().ClusterRoleBindings()
	if _, err := bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + group},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cellcast-placer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bindings.Delete(context.Background(), "test-"+group, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	eventually(t, group+" may place", func(ctx context.Context) error {
		review, err := admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				Groups:             []string{group},
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: "cellcast.io", Resource: "placements"},
			},
		}, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			err = errors.New("the API server doesn't know of the binding yet")
		}
		return err
	})
}

func ask(workload string) *cellcastv1alpha1.Placement {
	return &cellcastv1alpha1.Placement{Spec: cellcastv1alpha1.PlacementSpec{Workload: workload}}
}

// place asks once: client-go would ask ten times when the answer advises to.
func place(ctx context.Context, client versioned.Interface, question *cellcastv1alpha1.Placement) (*cellcastv1alpha1.Placement, error) {
	answer := &cellcastv1alpha1.Placement{}
	err := client.CellcastV1alpha1().RESTClient().Post().Resource("placements").
		Body(question).MaxRetries(0).Do(ctx).Into(answer)
	return answer, err
}

// remint asks once for a token of the named cell.
func remint(ctx context.Context, client versioned.Interface, cell string) (*cellcastv1alpha1.CellToken, error) {
	answer := &cellcastv1alpha1.CellToken{}
	err := client.CellcastV1alpha1().RESTClient().Post().Resource("cells").Name(cell).SubResource("token").
		Body(&cellcastv1alpha1.CellToken{Spec: cellcastv1alpha1.CellTokenSpec{Workload: "payments/api"}}).
		MaxRetries(0).Do(ctx).Into(answer)
	return answer, err
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	if err := hub.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
	}
}
