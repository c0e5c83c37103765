package credential

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/warning"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/audit"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/capacity"
	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/celltest"
	"cellcast.io/cellcast/pkg/mint"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/pkg/rest/call"
	"cellcast.io/cellcast/pkg/revocation"
	"cellcast.io/cellcast/pkg/seal"
)

// trail keeps records, or loses them.
type trail struct {
	records []audit.Record
	lost    error
}

func (t *trail) Write(r audit.Record) error {
	t.records = append(t.records, r)
	return t.lost
}

// agents is what is known of the agent of every cell.
type agents capacity.Description

func (a agents) Describe(string, time.Time) (capacity.Description, bool) {
	return capacity.Description(a), true
}

// fixture is an issuer for a cell that permits everything.
type fixture struct {
	*Issuer
	cell  *celltest.Cell
	trail *trail
	issue Issue
	call  call.Call
}

func newFixture(t *testing.T, revocable bool, agent agents) *fixture {
	t.Helper()
	hub := celltest.NewHub(nil)
	tokens, err := cell.NewTokens(hub, cell.TokenOptions{ServiceAccount: "cellcast-hub"})
	if err != nil {
		t.Fatal(err)
	}
	api := celltest.New(t, "fra-1", hub, nil)
	api.AllowMint("payments", "deployer")
	api.AddServiceAccount("payments", "deployer")
	api.AllowRevocation("payments")
	clients := cell.NewClients(tokens, cell.Options{Version: "test"})
	written := &trail{}
	compiler, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	p, errs := compiler.Compile(&registryv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: registryv1alpha1.PlacementPolicySpec{
			Subjects:   []registryv1alpha1.PolicySubject{{Users: []string{"dana"}}},
			Credential: registryv1alpha1.CredentialScope{Namespace: "payments", ServiceAccountName: "deployer", Revocable: revocable},
		},
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	dana := policy.Caller{User: "dana"}
	scope, refused := p.Scope(dana, "payments/api")
	if refused != nil {
		t.Fatal(refused)
	}
	cells := Cells(func(row *registryv1alpha1.Cluster) (mint.Cell, error) { return clients.For(row) })
	return &fixture{
		Issuer: &Issuer{
			Cells: cells, Capacity: agent, Ceiling: time.Hour, Audit: written, Now: time.Now,
		},
		cell: api, trail: written,
		issue: Issue{Place: cells.At(api.Cluster()), Policy: p, Workload: "payments/api", Scope: scope},
		call:  call.Call{ID: "r-1", Caller: caller.Identity{Class: caller.ClassHubUser, Caller: dana}},
	}
}

// ends is an agent that ends credentials in namespace payments.
var ends = agents{Health: cellcastv1alpha1.CapacityFresh, RevocableNamespaces: []string{"payments"}}

func (f *fixture) ask(t *testing.T, ctx context.Context) (*cellcastv1alpha1.Credential, error) {
	t.Helper()
	issue, refused := f.Settle(f.issue)
	if refused != nil {
		t.Fatal(refused)
	}
	return f.Issue(ctx, f.call, issue)
}

// warnings collects what a caller is warned of.
type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

func TestACredentialTravelsSealedToWhoSendsAKey(t *testing.T) {
	f := newFixture(t, false, agents{})
	key, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	delivery, refused := ParseDelivery(key.Recipient(), "")
	if refused != nil {
		t.Fatal(refused)
	}
	f.issue.Delivery = delivery
	var warned warnings
	got, err := f.ask(t, warning.WithWarningRecorder(t.Context(), &warned))
	if err != nil {
		t.Fatal(err)
	}
	token, err := key.Open(got.SealedToken)
	if err != nil || !strings.HasPrefix(token, "eyJ") || got.Token != "" {
		t.Errorf("sealed %q, in the clear %q: %v", got.SealedToken, got.Token, err)
	}
	if len(warned.texts) != 0 || !f.trail.records[0].Sealed {
		t.Errorf("warned of %v; the record says sealed: %t", warned.texts, f.trail.records[0].Sealed)
	}
}

func TestACredentialInTheClearComesWithAWarning(t *testing.T) {
	f := newFixture(t, false, agents{})
	var warned warnings
	got, err := f.ask(t, warning.WithWarningRecorder(t.Context(), &warned))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.Token, "eyJ") || got.SealedToken != "" || got.RevokesAt != nil || got.RevocationNonce != "" {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{unsealed}, warned.texts); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestWhatIsInNoTrailIsIssuedToNobody(t *testing.T) {
	f := newFixture(t, true, ends)
	f.trail.lost = errors.New("no space left on device")
	got, err := f.ask(t, t.Context())
	if got != nil {
		t.Errorf("a credential was issued: %+v", got)
	}
	const want = "MintUnavailable: the hub can't write its audit trail, and issues nothing that isn't in it"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if left := f.cell.Secrets(); len(left) != 0 {
		t.Errorf("the credential lives on at the cell: %v", left)
	}
}

func TestARevocableCredentialSaysWhenItEndsAndByWhat(t *testing.T) {
	f := newFixture(t, true, ends)
	f.issue.TTL = time.Minute
	got, err := f.ask(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.RevokesAt == nil || time.Until(got.RevokesAt.Time) > time.Minute || got.ExpirationTimestamp.Sub(got.RevokesAt.Time) < 8*time.Minute {
		t.Errorf("revokes at %v, expires at %s", got.RevokesAt, got.ExpirationTimestamp)
	}
	if len(got.RevocationNonce) != 26 {
		t.Errorf("the hub drew %q", got.RevocationNonce)
	}
	if record := f.trail.records[0]; record.BoundTo != revocation.SecretName(Owner(f.call), got.RevocationNonce) {
		t.Errorf("the record says that it's bound to %q", record.BoundTo)
	}
	if record := f.trail.records[0]; !record.RevokesAt.Equal(got.RevokesAt.Time) || record.TTLSeconds != 60 {
		t.Errorf("the record says %s and %d s", record.RevokesAt, record.TTLSeconds)
	}
}

func TestARevocableCredentialNeedsAnAgentThatEndsIt(t *testing.T) {
	for sentence, tt := range map[string]struct {
		agent agents
		code  refusal.Code
	}{
		"one that ends it":           {ends, ""},
		"one that has fallen silent": {agents{Health: cellcastv1alpha1.CapacityStale, RevocableNamespaces: []string{"payments"}}, refusal.MintUnavailable},
		"one that never reported":    {agents{}, refusal.MintUnavailable},
		"one for another namespace":  {agents{Health: cellcastv1alpha1.CapacityFresh, RevocableNamespaces: []string{"web"}}, refusal.MintFailed},
		"one for no namespace":       {agents{Health: cellcastv1alpha1.CapacityFresh}, refusal.MintFailed},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFixture(t, true, tt.agent)
			_, refused := f.Settle(f.issue)
			if (refused == nil) != (tt.code == "") || refused != nil && refused.Code != tt.code {
				t.Errorf("got %v, want %q", refused, tt.code)
			}
		})
	}
}

func TestParseDeliveryRefusesAWeakNonce(t *testing.T) {
	if _, refused := ParseDelivery(nil, "guess-me"); refused == nil || refused.Field != "spec.revocationNonce" {
		t.Errorf("got %v", refused)
	}
	if _, refused := ParseDelivery(&cellcastv1alpha1.Recipient{KeyType: "RSA"}, ""); refused == nil || refused.Field != "spec.recipient.kty" {
		t.Errorf("got %v", refused)
	}
}
