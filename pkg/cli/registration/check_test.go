package registration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/pkg/cli/registration"
)

func TestNewRefuses(t *testing.T) {
	const key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
	for name, test := range map[string]struct {
		change func(*registration.Cell)
		want   string
	}{
		"a name that is no DNS name": {
			func(c *registration.Cell) { c.Name = "EU_1"; c.Audience = "eu" },
			"cell name: a lowercase RFC 1123 subdomain must consist of"},
		"a name that is longer than a label": {
			func(c *registration.Cell) { c.Name = strings.Repeat("a", 64) },
			"cell name: must be no more than 63 characters"},
		"an endpoint in the clear": {
			func(c *registration.Cell) { c.Endpoint = "http://eu-1.example.com" },
			"endpoint: must be an https URL with a host"},
		"an endpoint with a user": {
			func(c *registration.Cell) { c.Endpoint = "https://me:pw@eu-1.example.com" },
			"endpoint: must hold no user or password"},
		"an endpoint with a query": {
			func(c *registration.Cell) { c.Endpoint = "https://eu-1.example.com?x=1" },
			"endpoint: must have no query and no fragment"},
		"a CA bundle with a private key": {
			func(c *registration.Cell) { c.CABundle = []byte(key) },
			"CA of the cell: must hold PEM certificates and nothing else"},
		"a certificate with a private key after it": {
			func(c *registration.Cell) { c.Hub.MirrorCA = append(read(t, "ca.pem"), key...) },
			"CA of the hub's mirror: must hold PEM certificates and nothing else"},
		"a CA bundle without a certificate": {
			func(c *registration.Cell) { c.CABundle = []byte("token") },
			"CA of the cell: holds no PEM certificate"},
		"a certificate that is none": {
			func(c *registration.Cell) {
				c.CABundle = []byte("-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n")
			},
			"CA of the cell: holds a PEM block that is no X.509 certificate"},
		"a CA bundle that no row could hold": {
			func(c *registration.Cell) { c.CABundle = make([]byte, 48<<10+1) },
			"CA of the cell: must be no more than 49152 bytes"},
		"a label that is none": {
			func(c *registration.Cell) { c.Labels = map[string]string{"env": "not a value"} },
			`labels: Invalid value: "not a value"`},
		"an unknown provider": {
			func(c *registration.Cell) { c.Provider = "moon" },
			"provider: must be one of [eks gke aks generic]"},
		"an unknown state": {
			func(c *registration.Cell) { c.State = "live" },
			"state: must be one of [LIVE DARK DRAINING]"},
		"a cell without an issuer": {
			func(c *registration.Cell) { c.Issuer = "" },
			"issuer of the cell: must not be empty: the agent's reports are known by it"},
		"an audience that the row would not take": {
			func(c *registration.Cell) { c.Audience = "cell/" },
			`audience of the cell: "cell/" must be 1 to 253`},
		"an empty audience of tokens": {
			func(c *registration.Cell) { c.MintAudiences = []string{""} },
			"audience of tokens: must be 1 to 512 characters"},
		"an agent without a name": {
			func(c *registration.Cell) { c.Agent.Namespace = "x" },
			"agent: name: a lowercase RFC 1123 subdomain must consist of"},
		"nothing to mint for": {
			func(c *registration.Cell) { c.Mint = nil },
			"ServiceAccounts to mint for: at least one is needed: without it the hub can issue no credential"},
		"a wildcard to mint for": {
			func(c *registration.Cell) { c.Mint = []types.NamespacedName{{Namespace: "*", Name: "deployer"}} },
			"ServiceAccount to mint for */deployer: namespace: a lowercase RFC 1123 label must consist of"},
		"a revocable namespace of the control plane": {
			func(c *registration.Cell) { c.Revocable = []string{"kube-system"} },
			`revocable namespace "kube-system": must not be one of Kubernetes' own`},
		"the default namespace as a revocable one": {
			func(c *registration.Cell) { c.Revocable = []string{"default"} },
			`revocable namespace "default": must not be one of Kubernetes' own`},
		"the agent's namespace as a revocable one": {
			func(c *registration.Cell) { c.Revocable = []string{"cellcast-system"} },
			`revocable namespace "cellcast-system": must not be the agent's own`},
		"a revocable namespace that is none": {
			func(c *registration.Cell) { c.Revocable = []string{"*"} },
			`revocable namespace "*": a lowercase RFC 1123 label must consist of`},
		"more revocable namespaces than an agent can report": {
			func(c *registration.Cell) {
				for i := range 65 {
					c.Revocable = append(c.Revocable, fmt.Sprintf("ci-%d", i))
				}
			},
			"revocable namespaces: must be no more than 64, which is what an agent can report"},
		"a quota of less than nothing": {
			func(c *registration.Cell) { c.RevocableQuota = -1 },
			"quota of a revocable namespace: must be 1 to 100000 Secrets"},
		"a quota that bounds nothing": {
			func(c *registration.Cell) { c.RevocableQuota = 100_001 },
			"quota of a revocable namespace: must be 1 to 100000 Secrets"},
		"a life that Kubernetes would not issue": {
			func(c *registration.Cell) { c.MaxTTL = 9 * time.Minute },
			"longest life of a token: must be at least 10m, the least that Kubernetes issues a token for"},
		"a life of half seconds": {
			func(c *registration.Cell) { c.MaxTTL = time.Hour + time.Millisecond },
			"longest life of a token: must be whole seconds"},
		"a hub without an issuer": {
			func(c *registration.Cell) { c.Hub.Issuer = "" },
			"issuer of the hub: must be an https URL with a host"},
		"a mirror in the clear": {
			func(c *registration.Cell) { c.Hub.MirrorURL = "http://mirror.example.com" },
			"URL of the hub's mirror: must be an https URL with a host"},
		"a mirror with the well-known path": {
			func(c *registration.Cell) {
				c.Hub.MirrorURL = "https://mirror.example.com/.well-known/openid-configuration"
			},
			"URL of the hub's mirror: must be without /.well-known/openid-configuration"},
		"a cell that calls itself as the hub does": {
			func(c *registration.Cell) { c.Issuer = c.Hub.Issuer },
			`the cell's issuer and the hub's are both "https://hub.example.com": an API server refuses to trust another one of its own name.`},
	} {
		t.Run(name, func(t *testing.T) {
			cell := least()
			test.change(&cell)
			_, err := registration.New(cell)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s…", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "c2VjcmV0") {
				t.Errorf("the error quotes the file: %v", err)
			}
		})
	}
}

func TestNewNamesEverythingThatIsWrong(t *testing.T) {
	cell := least()
	cell.Name, cell.Mint, cell.Hub.Issuer = "eu_1", nil, cell.Issuer
	_, err := registration.New(cell)
	var shared *registration.SharedIssuerError
	if !errors.As(err, &shared) || !strings.Contains(err.Error(), "cell name:") || !strings.Contains(err.Error(), "ServiceAccounts to mint for:") {
		t.Errorf("got %v, want all three", err)
	}
}
