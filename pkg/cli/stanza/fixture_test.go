package stanza_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/caller"
	"cellcast.io/cellcast/pkg/cli/stanza"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/test/issuer"
)

const audience = "cellcast.io/hub"

// hub is a hub that took over what Write wrote.
type hub struct {
	t         *testing.T
	issuer    *issuer.Issuer
	pipelines *caller.Pipelines
}

// newHub starts an issuer that calls itself as the platform's does, and a hub
// that trusts it; edit may change the configuration in between.
func newHub(t *testing.T, name, iss string, edit func(string) string) *hub {
	t.Helper()
	i, err := issuer.Start(issuer.Options{Name: iss})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	content, err := stanza.Write(name, stanza.Options{Issuer: iss, DiscoveryURL: i.DiscoveryURL(), Audience: audience, CA: i.CA()})
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		content = []byte(edit(string(content)))
	}
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	pipelines, err := caller.NewPipelines(t.Context(), caller.PipelineOptions{File: file})
	if err != nil {
		t.Fatalf("the hub doesn't take it over: %v\n%s", err, content)
	}
	return &hub{t: t, issuer: i, pipelines: pipelines}
}

// token signs the claims for the hub.
func (h *hub) token(claims map[string]any) string {
	h.t.Helper()
	all := with(claims, "aud", audience)
	token, err := h.issuer.Sign(all, issuer.Signing{})
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

// admit is who the hub takes a job with these claims for.
func (h *hub) admit(claims map[string]any) policy.Caller {
	h.t.Helper()
	response, _, err := h.pipelines.AuthenticateToken(h.t.Context(), h.token(claims))
	if err != nil {
		h.t.Fatal(err)
	}
	return caller.From(response.User).Caller
}

// with is a copy of claims with other values; nil takes one away.
func with(claims map[string]any, changes ...any) map[string]any {
	all := map[string]any{}
	for name, value := range claims {
		all[name] = value
	}
	for i := 0; i < len(changes); i += 2 {
		all[changes[i].(string)] = changes[i+1]
	}
	return all
}

// become is a copy of claims in which those that a policy names have the values
// that it names. A nested one is named with its parents before it.
func become(claims map[string]any, named map[string]registry.ClaimValue) map[string]any {
	all := with(claims)
	for name, value := range named {
		parent, rest, _ := strings.Cut(name, "/")
		inner, nested := all[parent].(map[string]any)
		if !nested {
			all[name] = string(value)
			continue
		}
		all[parent] = become(inner, map[string]registry.ClaimValue{rest: value})
	}
	return all
}

// permits reports whether a policy whose subject has these claims is for the
// caller.
func permits(t *testing.T, c policy.Caller, issuer string, claims map[string]registry.ClaimValue) bool {
	t.Helper()
	compiler, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	compiled, errs := compiler.Compile(&registry.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "acme"},
		Spec: registry.PlacementPolicySpec{
			Subjects:   []registry.PolicySubject{{Issuer: issuer, Claims: claims}},
			Credential: registry.CredentialScope{Namespace: "acme", ServiceAccountName: "deployer"},
		},
	})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	_, refused := policy.NewSet([]*policy.Policy{compiled}).Govern(c, "acme/shop")
	return refused == nil
}
