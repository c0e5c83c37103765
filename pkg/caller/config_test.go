package caller

import (
	"fmt"
	"strings"
	"testing"

	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

func TestParseConfig(t *testing.T) {
	const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	const issuer = "issuer: {url: https://ci.example.com, audiences: [hub]}"
	entry := func(mappings string) string {
		return header + "jwt: [{" + issuer + ", claimMappings: {" + mappings + "}}]\n"
	}
	const username = `username: {claim: sub, prefix: ""}`

	tests := map[string]struct {
		file string
		err  string // "" for success
	}{
		"takes an entry":                     {entry(username), ""},
		"takes no entries":                   {header + "jwt: []\n", ""},
		"takes a uid":                        {entry(username + `, uid: {claim: repository_id}`), ""},
		"takes groups by CEL":                {entry(username + `, groups: {expression: "claims.groups"}`), ""},
		"takes a claim":                      {entry(username + `, extra: [{key: claims.cellcast.io/repository_id, valueExpression: claims.repository_id}]`), ""},
		"takes a leading document separator": {"---\n" + entry(username), ""},

		"refuses an unknown field": {entry(username + ", user: {claim: sub}"),
			`strict decoding error: unknown field "jwt[0].claimMappings.user"`},
		"refuses a field given twice": {entry(username + ", " + username),
			`strict decoding error: yaml: unmarshal errors:
  line 3: key "username" already set in map`},
		"refuses another version": {strings.Replace(entry(username), "/v1", "/v1beta1", 1),
			`no kind "AuthenticationConfiguration" is registered for version "apiserver.config.k8s.io/v1beta1" in scheme "SCHEME"`},
		"refuses another kind": {strings.Replace(header, "Authentication", "Authorization", 1),
			"the file holds an object of kind AuthorizationConfiguration, not an AuthenticationConfiguration"},
		"refuses a second document": {entry(username) + "---\n" + entry(username), "the file holds more than one YAML document"},
		"refuses an empty file":     {"\n", "the file is empty"},
		"refuses more than 1 MiB":   {strings.Repeat("#", 1<<20) + "\n", "the file has more than 1048576 bytes"},

		"refuses anonymous access": {header + "anonymous: {enabled: true, conditions: [{path: /livez}]}\n",
			`anonymous: Forbidden: the hub answers nobody who doesn't say who they are`},
		"refuses two entries of one issuer": {header + "jwt: [{" + issuer + ", claimMappings: {" + username + "}}, {" + issuer + ", claimMappings: {" + username + "}}]\n",
			`jwt[1].issuer.url: Duplicate value: "https://ci.example.com"`},
		"refuses an issuer over http": {strings.Replace(entry(username), "https:", "http:", 1),
			`jwt[0].issuer.url: Invalid value: "http://ci.example.com": URL scheme must be https`},
		"refuses an issuer that would forge another's names": {strings.Replace(entry(username), "https://ci.example.com", `"https://ci.example.com#"`, 1),
			`jwt[0].issuer.url: Forbidden: '#' ends the issuer in a pipeline's name, so an issuer must not have one`},
		"refuses an egress selector": {strings.Replace(entry(username), "audiences: [hub]", "audiences: [hub], egressSelectorType: cluster", 1),
			`jwt[0].issuer.egressSelectorType: Forbidden: the hub has no egress selector; it reaches issuers directly, or by the proxy of its environment`},
		"refuses groups.claim": {entry(username + `, groups: {claim: teams, prefix: ""}`),
			`jwt[0].claimMappings.groups.claim: Forbidden: it would fetch distributed claims from a URL that the token names; use groups.expression, such as claims.teams`},
		"refuses a username in system:": {entry(`username: {claim: sub, prefix: "system:"}`),
			`jwt[0].claimMappings.username.prefix: Forbidden: names that begin with system: or cellcast.io: are reserved`},
		"refuses groups in cellcast.io:": {entry(username + `, groups: {prefix: "cellcast.io:x", claim: g}`),
			`[jwt[0].claimMappings.groups.claim: Forbidden: it would fetch distributed claims from a URL that the token names; use groups.expression, such as claims.g, ` +
				`jwt[0].claimMappings.groups.prefix: Forbidden: names that begin with system: or cellcast.io: are reserved]`},
		"refuses to map iss": {entry(username + `, extra: [{key: claims.cellcast.io/iss, valueExpression: "'https://other'"}]`),
			`jwt[0].claimMappings.extra[0].key: Forbidden: the hub sets this key itself, from the token's iss`},
		"refuses to map sub": {entry(username + `, extra: [{key: claims.cellcast.io/sub, valueExpression: claims.actor}]`),
			`jwt[0].claimMappings.extra[0].key: Forbidden: the hub sets this key itself, from the token's sub`},
		"refuses a foreign extra key": {entry(username + `, extra: [{key: example.com/a, valueExpression: claims.a}]`),
			`jwt[0].claimMappings.extra[0].key: Forbidden: a pipeline's claims have keys that begin with claims.cellcast.io/`},
		"refuses what Kubernetes refuses": {entry(`username: {claim: sub}`),
			`jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing`},
	}
	compiler := authenticationcel.NewDefaultCompiler()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseConfig([]byte(tc.file), compiler)
			got := ""
			if err != nil {
				got = fmt.Sprint(err)
				if before, after, ok := strings.Cut(got, `in scheme "`); ok { // named after a source line
					_, after, _ = strings.Cut(after, `"`)
					got = before + `in scheme "SCHEME"` + after
				}
			}
			if got != tc.err {
				t.Errorf("got\n%s\nwant\n%s", got, tc.err)
			}
		})
	}
}
