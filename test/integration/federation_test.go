package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/test/world"
)

// as is a client of a cell with this token.
func as(t *testing.T, cell *world.Cell, token string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: cell.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: cell.CABundle},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func whoAmI(ctx context.Context, client kubernetes.Interface) (string, error) {
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// All cells have one issuer string and trust one hub, and yet a token that the
// hub shows to one of them is worthless at the next.
func TestAHubTokenOfOneCellIsWorthlessAtAnother(t *testing.T) {
	require(t)
	eu, us := hub.Cell("prod-eu"), hub.Cell("prod-us")
	token, err := hub.Hub.Token(t.Context(), world.Namespace, world.HubServiceAccount, 10*time.Minute, eu.Audience)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := whoAmI(t.Context(), as(t, eu, token)); err != nil || who != world.HubUser {
		t.Errorf("its own cell knows %q: %v", who, err)
	}
	if who, err := whoAmI(t.Context(), as(t, us, token)); !apierrors.IsUnauthorized(err) {
		t.Errorf("another cell knows %q: %v", who, err)
	}
}

// Whoever held the hub's identity for a moment must not keep the cells.
func TestAHubTokenThatLivesLongIsWorthless(t *testing.T) {
	require(t)
	cell := hub.Cell("prod-eu")
	token, err := hub.Hub.Token(t.Context(), world.Namespace, world.HubServiceAccount, 2*time.Hour, cell.Audience)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := whoAmI(t.Context(), as(t, cell, token)); !apierrors.IsUnauthorized(err) {
		t.Errorf("the cell knows %q: %v", who, err)
	}
}

func TestACredentialIsGoodForItsCellAndNamespaceAlone(t *testing.T) {
	require(t)
	answer, err := place(t.Context(), doors(t, nil)["direct"], ask("payments/api"))
	if err != nil {
		t.Fatal(err)
	}
	chosen, other := hub.Cell(answer.Status.Cell.Name), hub.Cell("prod-eu")
	if chosen == other {
		other = hub.Cell("prod-us")
	}
	token := answer.Status.Credential.Token
	if who, err := whoAmI(t.Context(), as(t, chosen, token)); err != nil || who != "system:serviceaccount:payments:deployer" {
		t.Errorf("the chosen cell knows %q: %v", who, err)
	}
	if _, err := whoAmI(t.Context(), as(t, other, token)); !apierrors.IsUnauthorized(err) {
		t.Errorf("another cell says %v", err)
	}
	if _, err := as(t, chosen, token).CoreV1().ConfigMaps("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("another namespace says %v", err)
	}
}

func TestADryRunMintsNothing(t *testing.T) {
	require(t)
	for door, client := range doors(t, nil) {
		t.Run(door, func(t *testing.T) {
			before := tokenRequests(t)
			answer, err := client.CellcastV1alpha1().Placements().Create(t.Context(), ask("payments/api"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status.Credential != nil || answer.Status.Cell.Name == "" {
				t.Errorf("got %+v", answer.Status)
			}
			if now := tokenRequests(t); now != before {
				t.Errorf("%d tokens were asked for", now-before)
			}
		})
	}
}

// tokenRequests counts the tokens that were asked for on the production cells.
func tokenRequests(t *testing.T) int {
	t.Helper()
	n := 0
	for _, cell := range []string{"prod-eu", "prod-us"} {
		content, err := os.ReadFile(hub.Cell(cell).AuditLog)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(content), `"subresource":"token"`)
	}
	return n
}

func TestDrainingMovesTheNextPlacementAndKeepsWhatWasIssued(t *testing.T) {
	require(t)
	client := doors(t, nil)["direct"]
	first, err := place(t.Context(), client, ask("payments/api"))
	if err != nil {
		t.Fatal(err)
	}
	drained := first.Status.Cell.Name
	setState(t, drained, registryv1alpha1.StateDraining)
	defer setState(t, drained, registryv1alpha1.StateLive)
	eventually(t, "the next placement goes elsewhere", func(ctx context.Context) error {
		answer, err := place(ctx, client, ask("payments/api"))
		if err == nil && answer.Status.Cell.Name == drained {
			return apierrors.NewConflict(cellcastv1alpha1.Resource("placements"), drained, nil)
		}
		return err
	})
	if _, err := whoAmI(t.Context(), as(t, hub.Cell(drained), first.Status.Credential.Token)); err != nil {
		t.Errorf("the credential that was issued before ended: %v", err)
	}
}

func setState(t *testing.T, cell string, state registryv1alpha1.ClusterState) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"state":%q}}`, state)
	if _, err := hub.Admin.RegistryV1alpha1().Clusters().Patch(context.Background(), cell, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A caller sees the cells that it may reach, and of the others their number.
func TestExplainAndCellsShowACallerItsOwnCellsAlone(t *testing.T) {
	require(t)
	for door, client := range doors(t, nil) {
		t.Run(door, func(t *testing.T) {
			question := ask("payments/api")
			question.Spec.Explain = true
			answer, err := place(t.Context(), client, question)
			if err != nil {
				t.Fatal(err)
			}
			if len(answer.Status.Candidates) != 2 || answer.Status.HiddenCells != 1 {
				t.Errorf("got %d candidates and %d hidden: %+v", len(answer.Status.Candidates), answer.Status.HiddenCells, answer.Status.Candidates)
			}
			cells, err := client.CellcastV1alpha1().Cells().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(cells.Items) != 2 || cells.Items[0].Name != "prod-eu" || cells.Items[1].Name != "prod-us" {
				t.Errorf("got %+v", cells.Items)
			}
			if _, err := client.CellcastV1alpha1().Cells().Get(t.Context(), "dev-eu", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("a cell outside the policy: got %v, want 404", err)
			}
		})
	}
}

func TestAHubUserWithoutThePermissionMayNotPlace(t *testing.T) {
	require(t)
	u, err := hub.Hub.User("nobody-in-particular", "nobodies")
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(u.Config())
	if err != nil {
		t.Fatal(err)
	}
	_, err = place(t.Context(), client, ask("payments/api"))
	if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "NoPolicy") {
		t.Errorf("got %v, want RBAC's 403", err)
	}
	if _, err := client.CellcastV1alpha1().Cells().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want RBAC's 403", err)
	}
}

// kubectl runs the control planes' own kubectl.
func kubectl(t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), hub.Kubectl, args...)
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+bin+":"+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func TestKubectlSpeaksTheAPI(t *testing.T) {
	require(t)
	name := unique(t)
	placers(t, name)
	policy(t, name, func(s *registryv1alpha1.PlacementPolicySpec) {
		s.Subjects = append(s.Subjects, registryv1alpha1.PolicySubject{Groups: []string{name}})
	})
	person, err := hub.Hub.User(name, name)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "placement.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: cellcast.io/v1alpha1\nkind: Placement\nmetadata:\n  name: x\nspec:\n  workload: payments/api\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	misspelt := filepath.Join(t.TempDir(), "misspelt.yaml")
	if err := os.WriteFile(misspelt, []byte("apiVersion: cellcast.io/v1alpha1\nkind: Placement\nmetadata:\n  name: x\nspec:\n  workload: payments/api\n  drak: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := hub.Hub.Admin.Kubeconfig
	for sentence, tt := range map[string]struct {
		kubeconfig string
		args       []string
		fails      bool
		says       []string
	}{
		"an ordinary user creates a placement from a file": {person.Kubeconfig, []string{"create", "-f", file}, false, []string{"placement.cellcast.io/x created"}},
		"a misspelt field is refused":                      {person.Kubeconfig, []string{"create", "-f", misspelt}, true, []string{"drak"}},
		"the plugin places":                                {person.Kubeconfig, []string{"create", "placement", "payments/api"}, false, []string{"prod-"}},
		"the other plugin, too":                            {person.Kubeconfig, []string{"cellcast", "place", "payments/api"}, false, []string{"prod-"}},
		"cells print a table":                              {admin, []string{"get", "cells"}, false, []string{"UTILISATION", "dev-eu", "Fresh"}},
		"a short name finds the rows":                      {admin, []string{"get", "clu"}, false, []string{"ACCEPTING", "prod-eu"}},
		"the category lists both kinds of row":             {admin, []string{"get", "cellcast"}, false, []string{"cluster.registry.cellcast.io/dev-eu", "placementpolicy.registry.cellcast.io/"}},
		"explain documents a question":                     {admin, []string{"explain", "placements.spec.ttl"}, false, []string{"how long the credential shall live"}},
		"explain documents an answer":                      {admin, []string{"explain", "placements.status.candidates.reason"}, false, []string{"NeverReported"}},
		"explain documents a row":                          {admin, []string{"explain", "placementpolicies.spec.credential.namespaceExpression"}, false, []string{"CEL"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			output, err := kubectl(t, tt.kubeconfig, tt.args...)
			if (err != nil) != tt.fails {
				t.Errorf("kubectl %v: %v\n%s", tt.args, err, output)
			}
			for _, text := range tt.says {
				if !strings.Contains(output, text) {
					t.Errorf("kubectl %v lacks %q:\n%s", tt.args, text, output)
				}
			}
		})
	}
	t.Run("explain has no field without a description", func(t *testing.T) {
		for _, kind := range []string{"placements", "cells", "clusters", "placementpolicies"} {
			output, err := kubectl(t, admin, "explain", kind, "--recursive", "--output=plaintext-openapiv2")
			if err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			if strings.Contains(output, "<no description>") {
				t.Errorf("%s has fields without a description:\n%s", kind, output)
			}
		}
	})
}
