package integration

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/test/world"
)

// refused checks that err is this refusal, by its HTTP status and its code, and
// that the message has the text.
func refused(t *testing.T, err error, code refusal.Code, status int32, text string) {
	t.Helper()
	got, ok := refusal.FromStatus(err)
	if !ok {
		t.Fatalf("got %v, want refusal %s", err, code)
	}
	var api apierrors.APIStatus
	if errors.As(err, &api); api.Status().Code != status || got.Code != code {
		t.Errorf("got %d %s, want %d %s: %v", api.Status().Code, got.Code, status, code, err)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("the message lacks %q: %v", text, err)
	}
	if clears := code.Meaning().MayClear; clears != (api.Status().Details.RetryAfterSeconds > 0) {
		t.Errorf("Retry-After is %d s, though it may clear: %t", api.Status().Details.RetryAfterSeconds, clears)
	}
}

// doors are the two ways to the hub, for callers whom the same policy governs.
func doors(t *testing.T, change func(*registryv1alpha1.PlacementPolicySpec)) map[string]versioned.Interface {
	t.Helper()
	name := unique(t)
	policy(t, name, func(spec *registryv1alpha1.PlacementPolicySpec) {
		spec.Subjects = append(spec.Subjects, registryv1alpha1.PolicySubject{Groups: []string{name}})
		if change != nil {
			change(spec)
		}
	})
	return map[string]versioned.Interface{"direct": pipeline(t, name), "aggregated": user(t, name)}
}

func TestRefusalsAreTheSameThroughBothDoors(t *testing.T) {
	require(t)
	tests := map[string]struct {
		policy   func(*registryv1alpha1.PlacementPolicySpec)
		question func(*cellcastv1alpha1.PlacementSpec)
		code     refusal.Code
		status   int32
		text     string
	}{
		"no policy is for the workload": {
			policy: func(s *registryv1alpha1.PlacementPolicySpec) { s.Workloads = []string{"other/*"} },
			code:   refusal.NoPolicy, status: http.StatusForbidden, text: "payments/api",
		},
		"the policy doesn't permit a dark cell": {
			question: func(s *cellcastv1alpha1.PlacementSpec) { s.Dark = true },
			code:     refusal.DarkNotPermitted, status: http.StatusForbidden, text: "dark",
		},
		"the policy's selector matches no cell": {
			policy: func(s *registryv1alpha1.PlacementPolicySpec) {
				s.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"env": "nowhere"}}
			},
			code: refusal.NoPermittedCells, status: http.StatusConflict, text: "selector",
		},
		"no permitted cell is dark": {
			policy:   func(s *registryv1alpha1.PlacementPolicySpec) { s.AllowDark = true },
			question: func(s *cellcastv1alpha1.PlacementSpec) { s.Dark = true },
			code:     refusal.NoEligibleCells, status: http.StatusServiceUnavailable,
		},
		"no permitted cell has room": {
			question: func(s *cellcastv1alpha1.PlacementSpec) { s.Resources = quantities("cpu", "1000") },
			code:     refusal.NoEligibleCells, status: http.StatusServiceUnavailable,
		},
		"a negative ttl": {
			question: func(s *cellcastv1alpha1.PlacementSpec) { s.TTL = "-5m" },
			code:     refusal.InvalidRequest, status: http.StatusBadRequest, text: "spec.ttl",
		},
		"a ttl that is no duration": {
			question: func(s *cellcastv1alpha1.PlacementSpec) { s.TTL = "5 minutes" },
			code:     refusal.InvalidRequest, status: http.StatusBadRequest, text: "15m",
		},
		"a ttl above the ceiling": {
			question: func(s *cellcastv1alpha1.PlacementSpec) { s.TTL = "1h" },
			code:     refusal.InvalidRequest, status: http.StatusBadRequest, text: "1h0m0s is longer than",
		},
		"a workload name of 300 characters": {
			question: func(s *cellcastv1alpha1.PlacementSpec) { s.Workload = strings.Repeat("a", 300) },
			code:     refusal.InvalidRequest, status: http.StatusBadRequest, text: "300",
		},
		"no workload": {
			question: func(s *cellcastv1alpha1.PlacementSpec) { s.Workload = "" },
			code:     refusal.InvalidRequest, status: http.StatusBadRequest, text: "spec.workload",
		},
		"a negative resource": {
			question: func(s *cellcastv1alpha1.PlacementSpec) { s.Resources = quantities("cpu", "-1") },
			code:     refusal.InvalidRequest, status: http.StatusBadRequest, text: "spec.resources",
		},
		"the cell's RBAC lacks serviceaccounts/token": {
			policy: func(s *registryv1alpha1.PlacementPolicySpec) { s.Credential.Namespace = "default" },
			code:   refusal.MintFailed, status: http.StatusServiceUnavailable, text: "default/deployer",
		},
	}
	for sentence, tt := range tests {
		t.Run(sentence, func(t *testing.T) {
			for door, client := range doors(t, tt.policy) {
				t.Run(door, func(t *testing.T) {
					question := ask("payments/api")
					if tt.question != nil {
						tt.question(&question.Spec)
					}
					_, err := place(t.Context(), client, question)
					refused(t, err, tt.code, tt.status, tt.text)
				})
			}
		})
	}
}

func TestNoPermittedCellHasEverReported(t *testing.T) {
	require(t)
	register(t, stranger("silent", map[string]string{"env": "silent"}))
	for door, client := range doors(t, func(s *registryv1alpha1.PlacementPolicySpec) {
		s.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"env": "silent"}}
	}) {
		t.Run(door, func(t *testing.T) {
			_, err := place(t.Context(), client, ask("payments/api"))
			refused(t, err, refusal.CapacityUnknown, http.StatusServiceUnavailable, "")
		})
	}
}

func TestNamingTheCellNeedsAPolicyThatAllowsIt(t *testing.T) {
	require(t)
	for door, client := range doors(t, nil) {
		t.Run(door, func(t *testing.T) {
			for _, cell := range []string{"prod-eu", "dev-eu", "no-such-cell"} {
				_, err := remint(t.Context(), client, cell)
				refused(t, err, refusal.CellChoiceNotPermitted, http.StatusForbidden, "name the cell")
			}
		})
	}
}

func TestNamingACellOutsideThePolicyTellsNothingOfIt(t *testing.T) {
	require(t)
	for door, client := range doors(t, func(s *registryv1alpha1.PlacementPolicySpec) { s.AllowCellSelection = true }) {
		t.Run(door, func(t *testing.T) {
			messages := map[string]bool{}
			for _, cell := range []string{"dev-eu", "no-such"} {
				_, err := remint(t.Context(), client, cell)
				refused(t, err, refusal.CellChoiceNotPermitted, http.StatusForbidden, "permits no cell")
				messages[strings.ReplaceAll(err.Error(), cell, "X")] = true
			}
			if len(messages) != 1 {
				t.Errorf("a cell that exists and one that doesn't are told apart: %v", messages)
			}
			if _, err := remint(t.Context(), client, "prod-us"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestACellThatDoesNotTrustTheHubIsSaidSo(t *testing.T) {
	require(t)
	row := stranger("stranger", map[string]string{"env": "stranger"})
	register(t, row)
	eventually(t, "the condition says so", func(ctx context.Context) error {
		return condition(ctx, "stranger", registryv1alpha1.ConditionTrustEstablished, metav1.ConditionFalse, registryv1alpha1.ReasonUnauthenticated)
	})
	for door, client := range doors(t, func(s *registryv1alpha1.PlacementPolicySpec) {
		s.ClusterSelector = metav1.LabelSelector{MatchLabels: row.Labels}
		s.AllowCellSelection = true
	}) {
		t.Run(door, func(t *testing.T) {
			_, err := remint(t.Context(), client, "stranger")
			refused(t, err, refusal.MintFailed, http.StatusServiceUnavailable, "trust")
		})
	}
}

// A replica that has just started refuses until it has heard from the fleet,
// and says that this is its own state.
func TestANewReplicaRefusesUntilItIsWarm(t *testing.T) {
	require(t)
	policy(t, unique(t), nil)
	replica, err := hub.Hub.AddReplica(t.Context(), world.ServerOptions{
		Name: "cellcast-hub-2", PipelineAuthentication: hub.Authentication, Args: []string{"--warmup-timeout=0s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Stop()
	signed, err := hub.Token(unique(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	config := hub.Direct(signed)
	config.Host = replica.URL
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = place(t.Context(), client, ask("payments/api"))
	refused(t, err, refusal.PlacementUnavailable, http.StatusServiceUnavailable, "replica")
}

func TestACellThatIsAwayCannotMint(t *testing.T) {
	require(t)
	clients := doors(t, func(s *registryv1alpha1.PlacementPolicySpec) {
		s.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}
	})
	cell := hub.Cell("prod-us")
	if err := cell.APIServer.Stop(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cell.APIServer.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the cell mints again", func(ctx context.Context) error {
			_, err := place(ctx, clients["direct"], ask("payments/api"))
			return err
		})
	}()
	for door, client := range clients {
		t.Run(door, func(t *testing.T) {
			_, err := place(t.Context(), client, ask("payments/api"))
			refused(t, err, refusal.MintUnavailable, http.StatusServiceUnavailable, "prod-us")
		})
	}
}
