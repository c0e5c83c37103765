package mint_test

import (
	"testing"
	"time"

	"cellcast.io/cellcast/pkg/cell"
	"cellcast.io/cellcast/pkg/cell/celltest"
	"cellcast.io/cellcast/pkg/mint"
)

func TestMintOverTheClientOfACell(t *testing.T) {
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
	try := func() (mint.Credential, string) {
		t.Helper()
		credential, err := mint.Mint(t.Context(), time.Now(), client, mint.Ask{Scope: scope, TTL: 15 * time.Minute, Ceiling: 15 * time.Minute})
		if err != nil {
			return credential, err.Error()
		}
		return credential, ""
	}

	const forbidden = "MintFailed: the hub may not create serviceaccounts/token for payments/deployer on cell fra-1: apply the Role that `cellcast register cell fra-1 --mint payments/deployer` prints"
	if _, got := try(); got != forbidden {
		t.Errorf("without a Role:\ngot  %s\nwant %s", got, forbidden)
	}
	api.AllowMint("payments", "deployer")
	const missing = "MintFailed: there is no ServiceAccount payments/deployer on cell fra-1: create it, or correct spec.credential of the policy"
	if _, got := try(); got != missing {
		t.Errorf("without a ServiceAccount:\ngot  %s\nwant %s", got, missing)
	}
	api.AddServiceAccount("payments", "deployer")
	credential, got := try()
	if got != "" || credential.Token.IsZero() || credential.JTI != "jti-fra-1-deployer" {
		t.Errorf("with both: %+v, %s", credential, got)
	}
	api.ShortenTo(10 * time.Minute)
	if credential, got := try(); got != "" || time.Until(credential.Expiration) > 10*time.Minute {
		t.Errorf("from a cell that shortens: ends %s, %s", credential.Expiration, got)
	}
	api.Tamper(func(c *celltest.Claims) { c.Subject = celltest.HubSubject })
	const stranger = "MintFailed: cell fra-1 issued a token that isn't for payments/deployer; it was thrown away"
	if _, got := try(); got != stranger {
		t.Errorf("from a cell in the wrong hands:\ngot  %s\nwant %s", got, stranger)
	}
}
