package placementpolicy_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/webhook/placementpolicy"
	"cellcast.io/cellcast/pkg/webhook/webhooktest"
)

func newHandler(t *testing.T) admission.Handler {
	t.Helper()
	compiler, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return placementpolicy.NewHandler(compiler, time.Hour, nil)
}

func TestRows(t *testing.T) {
	handler := newHandler(t)
	for _, row := range webhooktest.Rows(t, "testdata") {
		t.Run(row.Name, func(t *testing.T) {
			resp := handler.Handle(t.Context(), webhooktest.Create(t, row.JSON))
			answer := webhooktest.Answer(t, resp)
			if len(row.Refused) == 0 {
				if !resp.Allowed || len(resp.Warnings) > 0 {
					t.Errorf("refused or warned of: %s", answer)
				}
				return
			}
			if resp.Allowed || resp.Result.Code != http.StatusUnprocessableEntity {
				t.Fatalf("not refused as invalid: %s", answer)
			}
			var fields []string
			for _, cause := range resp.Result.Details.Causes {
				fields = append(fields, cause.Field)
			}
			if diff := cmp.Diff(row.Refused, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%s", diff, answer)
			}
			if strings.Contains(answer, row.Secret) {
				t.Errorf("the answer quotes %s: %s", row.Secret, answer)
			}
		})
	}
}

// payments is a row that nothing is wrong with and nothing is unwise about.
func payments() *registry.PlacementPolicy {
	return &registry.PlacementPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: registry.SchemeGroupVersion.String(), Kind: "PlacementPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: "payments"},
		Spec: registry.PlacementPolicySpec{
			Subjects:        []registry.PolicySubject{{Groups: []string{"developers"}}},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
			Credential:      registry.CredentialScope{Namespace: "payments", ServiceAccountName: "deployer"},
		},
	}
}

func minutes(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Minute}
}

func TestWarnings(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*registry.PlacementPolicySpec)
		want   []string
	}{
		"none of an ordinary policy": {change: func(*registry.PlacementPolicySpec) {}},
		"of a subject with an expression alone": {
			change: func(s *registry.PlacementPolicySpec) {
				s.Subjects = append(s.Subjects, registry.PolicySubject{Expression: "user.startsWith('a')"})
			},
			want: []string{"spec.subjects[1] has an expression alone: it's asked about every caller of every issuer, and of the hub; name an issuer, users, groups or serviceAccounts too"},
		},
		"none of an expression beside an issuer": {
			change: func(s *registry.PlacementPolicySpec) {
				s.Subjects = []registry.PolicySubject{{Issuer: "https://issuer.example.com", Expression: "claims.ref == 'main'"}}
			},
		},
		"of everyone that the hub knows": {
			change: func(s *registry.PlacementPolicySpec) {
				s.Subjects = []registry.PolicySubject{{Groups: []string{"developers", "system:authenticated"}}}
			},
			want: []string{"spec.subjects[0] names the group system:authenticated: everyone that the hub knows is in it"},
		},
		"of every ServiceAccount": {
			change: func(s *registry.PlacementPolicySpec) { s.Subjects[0].Groups = []string{"system:serviceaccounts"} },
			want:   []string{"spec.subjects[0] names the group system:serviceaccounts: every ServiceAccount of the hub is in it"},
		},
		"of a selector that permits every cell": {
			change: func(s *registry.PlacementPolicySpec) { s.ClusterSelector = metav1.LabelSelector{} },
			want:   []string{"spec.clusterSelector is empty: it permits every cell, those to come included"},
		},
		"of a life above the ceiling": {
			change: func(s *registry.PlacementPolicySpec) {
				s.TokenTTL = &registry.TokenTTL{Default: minutes(90), Max: minutes(120)}
			},
			want: []string{"spec.tokenTTL.default has no effect above 1h0m0s, the hub's --token-max-ttl",
				"spec.tokenTTL.max has no effect above 1h0m0s, the hub's --token-max-ttl"},
		},
		"none of a life at the ceiling": {
			change: func(s *registry.PlacementPolicySpec) { s.TokenTTL = &registry.TokenTTL{Max: minutes(60)} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			row := payments()
			tc.change(&row.Spec)
			raw, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			resp := newHandler(t).Handle(t.Context(), webhooktest.Create(t, raw))
			if !resp.Allowed {
				t.Fatalf("refused: %s", webhooktest.Answer(t, resp))
			}
			if diff := cmp.Diff(tc.want, resp.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryErrorOfThePolicyIsNamed(t *testing.T) {
	row := payments()
	row.Spec.Subjects = []registry.PolicySubject{{}, {Groups: []string{"a"}, Expression: "1 +"}}
	row.Spec.Credential.Namespace = ""
	raw, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	resp := newHandler(t).Handle(t.Context(), webhooktest.Create(t, raw))
	if resp.Allowed {
		t.Fatal("admitted")
	}
	fields := map[string]bool{}
	for _, cause := range resp.Result.Details.Causes {
		fields[cause.Field] = true
	}
	for _, want := range []string{"spec.subjects[0]", "spec.subjects[1].expression"} {
		if !fields[want] {
			t.Errorf("no cause names %s: %s", want, webhooktest.Answer(t, resp))
		}
	}
	if len(fields) < 3 {
		t.Errorf("the missing namespace isn't named: %s", webhooktest.Answer(t, resp))
	}
}
