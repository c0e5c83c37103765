package cluster_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/webhook"
	"cellcast.io/cellcast/pkg/webhook/cluster"
	"cellcast.io/cellcast/pkg/webhook/webhooktest"
)

// stored are the Clusters that the hub knows.
type stored []*registry.Cluster

func (s stored) List(selector labels.Selector) ([]*registry.Cluster, error) {
	var out []*registry.Cluster
	for _, c := range s {
		if selector.Matches(labels.Set(c.Labels)) {
			out = append(out, c)
		}
	}
	return out, nil
}

type broken struct{}

func (broken) List(labels.Selector) ([]*registry.Cluster, error) { return nil, errors.New("no cache") }

// refusals records what was audited.
type refusals []webhook.CredentialRefusal

func (r *refusals) CredentialRefused(refusal webhook.CredentialRefusal) { *r = append(*r, refusal) }

func TestRows(t *testing.T) {
	for _, row := range webhooktest.Rows(t, "testdata") {
		t.Run(row.Name, func(t *testing.T) {
			var audited refusals
			handler := cluster.NewHandler(stored{}, nil, &audited)
			resp := handler.Handle(t.Context(), webhooktest.Create(t, row.JSON))
			answer := webhooktest.Answer(t, resp)
			if len(row.Refused) == 0 {
				if !resp.Allowed || len(resp.Warnings) > 0 {
					t.Errorf("refused or warned of: %s", answer)
				}
				return
			}
			if resp.Allowed || resp.Result.Code != http.StatusUnprocessableEntity || resp.Result.Reason != metav1.StatusReasonInvalid {
				t.Fatalf("not refused as invalid: %s", answer)
			}
			var fields []string
			for _, cause := range resp.Result.Details.Causes {
				fields = append(fields, cause.Field)
			}
			if diff := cmp.Diff(row.Refused, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%s", diff, answer)
			}
			for _, refusal := range audited {
				answer += strings.Join(append(refusal.Fields, refusal.Name), " ")
			}
			if strings.Contains(answer, row.Secret) {
				t.Errorf("the answer or the audit quotes %s: %s", row.Secret, answer)
			}
		})
	}
}

// prod is a row that nothing is wrong with and nothing is unwise about.
func prod() *registry.Cluster {
	return &registry.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: registry.SchemeGroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Name: "prod-eu", Labels: map[string]string{"env": "prod"}},
		Spec: registry.ClusterSpec{
			Endpoint: "https://prod-eu.example.com",
			Trust:    registry.ClusterTrust{Audience: "cellcast:cell:prod-eu"},
			Reporter: &registry.ClusterReporter{
				Issuer: "https://issuer.example.com", Subject: "system:serviceaccount:cellcast-system:cellcast-agent", Keys: registry.ReporterKeysCell},
		},
	}
}

// other is a stored row that has nothing in common with prod.
func other(change func(*registry.Cluster)) stored {
	c := prod()
	c.Name, c.Spec.Endpoint, c.Spec.Trust.Audience = "other", "https://other.example.com", "cellcast:cell:other"
	change(c)
	return stored{c}
}

func raw(t *testing.T, c *registry.Cluster) []byte {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestValidate(t *testing.T) {
	type change func(*registry.Cluster)
	unchanged := change(func(*registry.Cluster) {})
	for name, tc := range map[string]struct {
		row      change
		other    change
		errors   []string
		warnings []string
	}{
		"admits a row with nothing unwise": {row: unchanged, other: unchanged},
		"refuses an audience that another cell has": {
			row: unchanged, other: func(c *registry.Cluster) { c.Spec.Trust.Audience = "cellcast:cell:prod-eu" },
			errors: []string{`spec.trust.audience: Duplicate value: is also the audience of the Cluster "other": a token shown to one cell must be worthless at another; use cellcast:cell:prod-eu`},
		},
		"refuses an audience that the hub takes itself": {
			row: func(c *registry.Cluster) { c.Spec.Trust.Audience = "cellcast.io/reports" }, other: unchanged,
			errors: []string{"spec.trust.audience: Invalid value: is an audience of the hub's own: a token that the hub shows to the cell would be good at the hub; use cellcast:cell:prod-eu"},
		},
		"warns of an endpoint that another cell has": {
			row: unchanged, other: func(c *registry.Cluster) { c.Spec.Endpoint = "https://PROD-EU.example.com:443/" },
			warnings: []string{`spec.endpoint is also the endpoint of the Cluster "other": one cell then counts as two`},
		},
		"takes another port for another cell": {row: unchanged, other: func(c *registry.Cluster) { c.Spec.Endpoint = "https://prod-eu.example.com:6443" }},
		"takes another path for another cell": {row: unchanged, other: func(c *registry.Cluster) { c.Spec.Endpoint = "https://prod-eu.example.com/b" }},
		"warns of a missing env": {
			row: func(c *registry.Cluster) { c.Labels = nil }, other: unchanged,
			warnings: []string{"metadata.labels[env] is missing: the cell counts as production, whose credentials live 10m by default and 15m at most"},
		},
		"warns of an env that it doesn't know": {
			row: func(c *registry.Cluster) { c.Labels["env"] = "Prod" }, other: unchanged,
			warnings: []string{"metadata.labels[env] is none of prod, production, stage, staging, dev, development: the cell counts as production, whose credentials live 10m by default and 15m at most"},
		},
		"warns of a cell that nobody reports for": {
			row: func(c *registry.Cluster) { c.Spec.Reporter = nil }, other: unchanged,
			warnings: []string{"spec.reporter is unset: nobody may report for the cell, so it stays Unknown and takes no placement"},
		},
		"takes the reporter of another cell, whose keys differ": {row: unchanged, other: unchanged},
		"warns of a reporter by discovery that another cell has": {
			row:      func(c *registry.Cluster) { c.Spec.Reporter.Keys = registry.ReporterKeysDiscovery },
			other:    func(c *registry.Cluster) { c.Spec.Reporter.Keys = registry.ReporterKeysDiscovery },
			warnings: []string{`spec.reporter is also that of the Cluster "other": with keys: Discovery the agent of either can report for both`},
		},
		"takes a reporter by discovery that another cell has with its own keys": {
			row: func(c *registry.Cluster) { c.Spec.Reporter.Keys = registry.ReporterKeysDiscovery }, other: unchanged,
		},
		"refuses a subject with a part too many": {
			row: func(c *registry.Cluster) { c.Spec.Reporter.Subject += ":x" }, other: unchanged,
			errors: []string{"spec.reporter.subject: Invalid value: must be system:serviceaccount:<namespace>:<name>: an agent reports with the token of its ServiceAccount"},
		},
		"refuses an issuer that discovery can't reach": {
			row: func(c *registry.Cluster) {
				c.Spec.Reporter.Issuer, c.Spec.Reporter.Keys = "http://issuer.example.com", registry.ReporterKeysDiscovery
			}, other: unchanged,
			errors: []string{"spec.reporter.issuer: Invalid value: must be an https URL with a host, such as https://cell.example.com:6443"},
		},
		"takes any issuer when the cell has the keys": {row: func(c *registry.Cluster) { c.Spec.Reporter.Issuer = "kubernetes/serviceaccount" }, other: unchanged},
		"refuses white space in what is compared literally": {
			row: func(c *registry.Cluster) {
				c.Spec.Reporter.Issuer += " "
				c.Spec.Reporter.Subject += "\n"
			}, other: unchanged,
			errors: []string{"spec.reporter.issuer: Invalid value: must have no white space: it's compared literally",
				"spec.reporter.subject: Invalid value: must have no white space: it's compared literally"},
		},
		"refuses a subject that no agent has": {
			row: func(c *registry.Cluster) { c.Spec.Reporter.Subject = "agent" }, other: unchanged,
			errors: []string{"spec.reporter.subject: Invalid value: must be system:serviceaccount:<namespace>:<name>: an agent reports with the token of its ServiceAccount"},
		},
		"refuses a query that is empty": {
			row: func(c *registry.Cluster) { c.Spec.Endpoint += "?" }, other: unchanged,
			errors: []string{"spec.endpoint: Invalid value: must have no query"},
		},
		"refuses a port without a host": {
			row: func(c *registry.Cluster) { c.Spec.Endpoint = "https://:6443" }, other: unchanged,
			errors: []string{"spec.endpoint: Invalid value: must be an https URL with a host, such as https://cell.example.com:6443"},
		},
		"names every error at once": {
			row: func(c *registry.Cluster) {
				c.Spec.Endpoint = "https://u@a.example.com/?q#f"
				c.Spec.CABundle = []byte("x")
			}, other: unchanged,
			errors: []string{
				"spec.endpoint: Invalid value: must have no userinfo: the hub authenticates by its own short-lived tokens",
				"spec.endpoint: Invalid value: must have no query",
				"spec.endpoint: Invalid value: must have no fragment",
				"spec.caBundle: Invalid value: must be PEM certificates and nothing else: what stands before entry 1 isn't PEM",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			row := prod()
			tc.row(row)
			handler := cluster.NewHandler(append(other(tc.other), prod()), []string{"cellcast.io/reports"}, nil)
			resp := handler.Handle(t.Context(), webhooktest.Create(t, raw(t, row)))
			var errs []string
			if resp.Result.Details != nil {
				for _, cause := range resp.Result.Details.Causes {
					errs = append(errs, cause.Field+": "+cause.Message)
				}
			}
			if diff := cmp.Diff(tc.errors, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.warnings, resp.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if resp.Allowed != (len(tc.errors) == 0) {
				t.Errorf("allowed: %v", resp.Allowed)
			}
		})
	}
}

func TestARowThatAlwaysSharedItsAudienceCanBeDrained(t *testing.T) {
	handler := cluster.NewHandler(other(func(c *registry.Cluster) { c.Spec.Trust.Audience = "cellcast:cell:prod-eu" }), nil, nil)
	old, row := prod(), prod()
	row.Spec.State = registry.StateDraining
	resp := handler.Handle(t.Context(), webhooktest.Update(t, raw(t, old), raw(t, row)))
	want := []string{`spec.trust.audience is also the audience of the Cluster "other": a token shown to one cell must be worthless at another; use cellcast:cell:prod-eu`}
	if diff := cmp.Diff(want, resp.Warnings); diff != "" || !resp.Allowed {
		t.Errorf("allowed %v, warnings (-want +got):\n%s", resp.Allowed, diff)
	}

	old.Spec.Trust.Audience = "cellcast:cell:older"
	if resp := handler.Handle(t.Context(), webhooktest.Update(t, raw(t, old), raw(t, row))); resp.Allowed {
		t.Error("a change to an audience that another cell has was admitted")
	}
}

func TestABrokenCacheIsAFaultThatTellsNothing(t *testing.T) {
	resp := cluster.NewHandler(broken{}, nil, nil).Handle(t.Context(), webhooktest.Create(t, raw(t, prod())))
	want := "the hub failed to check the row; its log says why under request id request-1"
	if resp.Allowed || resp.Result.Code != http.StatusInternalServerError || resp.Result.Message != want {
		t.Errorf("got %s", webhooktest.Answer(t, resp))
	}
}
