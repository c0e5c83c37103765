package mint_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/celltest"
	"cellcast.io/cellcast/pkg/mint"
)

// bindable is a cell that has all that a revocable credential needs, and the
// hub's client of it.
func bindable(t *testing.T) (*celltest.Cell, mint.Cell) {
	t.Helper()
	hub := celltest.NewHub(nil)
	tokens, err := cell.NewTokens(hub, cell.TokenOptions{ServiceAccount: "cellcast-hub"})
	if err != nil {
		t.Fatal(err)
	}
	api := celltest.New(t, "fra-1", hub, nil)
	client, err := cell.NewClients(tokens, cell.Options{Version: "test"}).For(api.Cluster())
	if err != nil {
		t.Fatal(err)
	}
	api.AllowMint("payments", "deployer")
	api.AddServiceAccount("payments", "deployer")
	return api, client
}

func bound(ttl time.Duration) mint.Ask {
	return mint.Ask{
		Scope: scope, TTL: 10 * time.Minute, Ceiling: 15 * time.Minute,
		Binding: &mint.Binding{Name: "cellcast-abc", TTL: ttl},
	}
}

func TestARevocableCredentialIsBoundToAnEmptyLabelledSecret(t *testing.T) {
	api, client := bindable(t)
	api.AllowRevocation("payments")
	credential, err := mint.Mint(t.Context(), time.Now(), client, bound(2*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	secret := api.Secrets()["payments/cellcast-abc"]
	if diff := cmp.Diff(map[string]string{"cellcast.io/revoke-after-seconds": "120"}, secret.Labels); diff != "" {
		t.Errorf("its labels differ (-want +got):\n%s", diff)
	}
	if secret.Type != corev1.SecretTypeOpaque || len(secret.Data)+len(secret.StringData) > 0 {
		t.Errorf("the Secret isn't empty and Opaque: %+v", secret)
	}
	if want := secret.CreationTimestamp.Add(2 * time.Minute); !credential.RevokesAt.Equal(want) {
		t.Errorf("revokes at %s, want %s: the Secret's own time counts", credential.RevokesAt, want)
	}
	if life := time.Until(credential.Expiration); life < 9*time.Minute || life > 11*time.Minute {
		t.Errorf("the token itself lives %s, want the ten minutes that Kubernetes issues at least", life)
	}
}

func TestAMintThatFailsLeavesNoSecret(t *testing.T) {
	for sentence, tt := range map[string]struct {
		prepare func(*celltest.Cell)
		want    string
	}{
		"no Role for Secrets": {func(*celltest.Cell) {},
			"MintFailed: the hub may not create a Secret in namespace payments of cell fra-1, which a revocable credential needs: apply what `cellcast register cell fra-1 --revocable payments` prints, or see whether the namespace's quota is used up, or the policy's ttl above the cell's --max-ttl"},
		"a token that isn't bound": {func(c *celltest.Cell) { c.AllowRevocation("payments"); c.Unbind(true) },
			"MintFailed: cell fra-1 issued a token for payments/deployer that can't be revoked; it was thrown away"},
		"a cell whose clock is an hour ahead": {func(c *celltest.Cell) { c.AllowRevocation("payments"); c.StampSecrets(time.Hour) },
			"MintFailed: cell fra-1 made the Secret of a revocable credential at "},
		"a token of someone else": {func(c *celltest.Cell) {
			c.AllowRevocation("payments")
			c.Tamper(func(claims *celltest.Claims) { claims.Subject = celltest.HubSubject })
		}, "MintFailed: cell fra-1 issued a token that isn't for payments/deployer; it was thrown away"},
	} {
		t.Run(sentence, func(t *testing.T) {
			api, client := bindable(t)
			tt.prepare(api)
			_, err := mint.Mint(t.Context(), time.Now(), client, bound(time.Minute))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if left := api.Secrets(); len(left) != 0 {
				t.Errorf("Secrets were left: %v", left)
			}
		})
	}
}

func TestANonceServesOnce(t *testing.T) {
	api, client := bindable(t)
	api.AllowRevocation("payments")
	if _, err := mint.Mint(t.Context(), time.Now(), client, bound(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, err := mint.Mint(t.Context(), time.Now(), client, bound(time.Minute))
	if err == nil || !strings.Contains(err.Error(), "draw a new revocationNonce") {
		t.Errorf("got %v", err)
	}
	if len(api.Secrets()) != 1 {
		t.Error("the second mint ended the first one's credential")
	}
}

func TestRevokeTellsWhetherThereWasSomething(t *testing.T) {
	api, client := bindable(t)
	revoke := func() (bool, string) {
		found, err := mint.Revoke(t.Context(), client, "payments", "cellcast-abc")
		if err != nil {
			return found, err.Error()
		}
		return found, ""
	}
	if found, got := revoke(); found || got != "MintFailed: the hub may not delete Secrets there on cell fra-1; the credential ends by itself" {
		t.Errorf("without a Role: %t, %s", found, got)
	}
	api.AllowRevocation("payments")
	if _, err := mint.Mint(t.Context(), time.Now(), client, bound(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if found, got := revoke(); !found || got != "" {
		t.Errorf("the first time: %t, %s", found, got)
	}
	if found, got := revoke(); found || got != "" {
		t.Errorf("the second time: %t, %s", found, got)
	}
	api.Down(true)
	const down = "MintUnavailable: cell fra-1 can't be asked to end the credential now; its agent ends it when its time is over"
	if _, got := revoke(); got != down {
		t.Errorf("with the cell down:\ngot  %s\nwant %s", got, down)
	}
}

func TestDiscardEndsTheCredentialThoughTheRequestHasEnded(t *testing.T) {
	api, client := bindable(t)
	api.AllowRevocation("payments")
	ask := bound(time.Minute)
	if _, err := mint.Mint(t.Context(), time.Now(), client, ask); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the caller went away"))
	mint.Discard(over, client, ask)
	if left := api.Secrets(); len(left) != 0 {
		t.Errorf("Secrets were left: %v", left)
	}
}

func TestABindingMustEndBeforeTheTokenDoes(t *testing.T) {
	_, client := bindable(t)
	for _, ttl := range []time.Duration{59 * time.Second, 11 * time.Minute} {
		if _, err := mint.Mint(t.Context(), time.Now(), client, bound(ttl)); err == nil {
			t.Errorf("a binding of %s was taken", ttl)
		}
	}
}
