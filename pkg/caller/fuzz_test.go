package caller

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"time"

	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/test/issuer"
)

// FuzzClaims shows arbitrary claims, signed by a key that is trusted, to an
// issuer whose mappings take names and groups straight from the token.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"name":"a","groups":["b"]}`,
		`{"name":"system:admin"}`, `{"name":"cellcast.io:reporter:eu-1"}`, `{"name":"a","groups":["system:masters"]}`,
		`{"name":"a","groups":"cellcast.io:pipelines"}`, `{"name":"pipeline:https://other#a","groups":["pipeline:https://other#b"]}`,
		`{"name":"a\u0000b","groups":[[""],7,null,{"a":[]}],"ref":["x","y"]}`, `{"NAME":"a","ISS":"https://other","Sub":"x"}`,
		`{"sub":"system:admin","name":"a","claims.cellcast.io/iss":"https://other"}`, `{"_claim_names":{"groups":"s"},"_claim_sources":{}}`,
		`{"exp":1e300,"nbf":-1}`, `{"aud":[7]}`, `{"name":{"a":"b"}}`, `{"email":"a","email_verified":false}`,
	} {
		f.Add(seed)
	}
	ci := startIssuer(f, issuer.Options{})
	p, _ := newPipelines(f, keyset.Options{}, trust{issuer: ci, mappings: `{
	  username: {expression: "claims.?name.orValue('nobody')"}, uid: {expression: "claims.?uid.orValue('')"},
	  groups: {expression: "claims.?groups.orValue([])"},
	  extra: [{key: claims.cellcast.io/ref, valueExpression: "claims.?ref.orValue('')"}]}`})
	prefix := "pipeline:" + ci.URL() + "#"

	f.Fuzz(func(t *testing.T, payload string) {
		token, err := ci.SignPayload(believable(ci, payload), issuer.Signing{Alg: issuer.ES256})
		if err != nil {
			t.Skip(err)
		}
		response, ok, err := p.AuthenticateToken(t.Context(), token)
		if !ok {
			if err == nil {
				t.Fatal("refused without a reason")
			}
			return
		}
		own := func(name string) bool {
			mapped, ok := strings.CutPrefix(name, prefix)
			return ok && !strings.HasPrefix(mapped, "system:") && !strings.HasPrefix(mapped, "cellcast.io:")
		}
		id := From(response.User)
		if id.Class != ClassPipeline || !own(id.User) || id.User == prefix {
			t.Errorf("%s user %q", id.Class, id.User)
		}
		mapped, hubs := id.Groups[:len(id.Groups)-2], id.Groups[len(id.Groups)-2:]
		if slices.ContainsFunc(mapped, func(group string) bool { return !own(group) }) ||
			!slices.Equal(hubs, []string{GroupPipelines, user.AllAuthenticated}) {
			t.Errorf("groups %q", id.Groups)
		}
		if id.Issuer != ci.URL() || id.Subject == "" {
			t.Errorf("issuer %q, subject %q", id.Issuer, id.Subject)
		}
		for key := range response.User.GetExtra() {
			if !strings.HasPrefix(key, ClaimPrefix) && key != "authentication.kubernetes.io/credential-id" {
				t.Errorf("extra key %q", key)
			}
		}
	})
}

// believable adds to an object the registered claims that a good token has,
// where it lacks them, so that the mappings are reached.
func believable(ci *issuer.Issuer, payload string) []byte {
	var claims map[string]json.RawMessage
	if json.Unmarshal([]byte(payload), &claims) != nil || claims == nil {
		return []byte(payload)
	}
	for name, value := range map[string]any{"iss": ci.URL(), "sub": "a", "aud": audience, "exp": in(10 * time.Minute)} {
		if _, ok := claims[name]; !ok {
			claims[name], _ = json.Marshal(value)
		}
	}
	b, err := json.Marshal(claims)
	if err != nil {
		return []byte(payload)
	}
	return b
}
