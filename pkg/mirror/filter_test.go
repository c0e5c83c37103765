package mirror_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/mirror"
)

func TestOnlyWhatIsMeantForCellsIsPassedOn(t *testing.T) {
	for sentence, tt := range map[string]struct {
		path, hub string
		code      int
		want      string
	}{
		"other members of the discovery document are left out": {
			mirror.DiscoveryPath, `{"issuer":"https://hub.internal","jwks_uri":"x","token_endpoint":"https://evil.example","internal":"10.0.0.1"}`,
			200, `{"issuer":"https://hub.internal","jwks_uri":"https://hub.example.com/openid/v1/jwks","response_types_supported":null,"subject_types_supported":null,"id_token_signing_alg_values_supported":null}`,
		},
		"private members of a key are left out": {
			mirror.KeysPath, `{"keys":[{"kty":"RSA","kid":"k1","n":"sXch","e":"AQAB","d":"secret","p":"secret","q":"secret"},{"kty":"EC","crv":"P-256","x":"a","y":"b","d":"secret"}]}`,
			200, `{"keys":[{"kty":"RSA","kid":"k1","n":"sXch","e":"AQAB"},{"kty":"EC","crv":"P-256","x":"a","y":"b"}]}`,
		},
		"a symmetric key is refused":            {mirror.KeysPath, `{"keys":[{"kty":"oct","k":"secret"}]}`, 503, "the hub's API server doesn't give this document now\n"},
		"a set without keys is refused":         {mirror.KeysPath, `{"keys":[]}`, 503, "the hub's API server doesn't give this document now\n"},
		"a set that isn't JSON is refused":      {mirror.KeysPath, `<html>`, 503, "the hub's API server doesn't give this document now\n"},
		"a document without issuer is refused":  {mirror.DiscoveryPath, `{"jwks_uri":"x"}`, 503, "the hub's API server doesn't give this document now\n"},
		"a document that isn't JSON is refused": {mirror.DiscoveryPath, ``, 503, "the hub's API server doesn't give this document now\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			hub := newHubAPI()
			hub.docs[tt.path] = tt.hub
			got := ask(t.Context(), newMirror(t, hub), "GET", tt.path)
			if got.Code != tt.code {
				t.Errorf("got %d, want %d", got.Code, tt.code)
			}
			if diff := cmp.Diff(tt.want, got.Body.String()); diff != "" {
				t.Errorf("the body differs (-want +got):\n%s", diff)
			}
		})
	}
}
