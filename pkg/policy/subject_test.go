package policy

import (
	"strings"
	"testing"
)

func TestSubjectsMatch(t *testing.T) {
	release := Caller{
		User: "pipeline:https://ci.example#x", Groups: []string{"cellcast.io:pipelines"},
		Issuer: ci, Subject: "repo:shop/api",
		Claims: map[string][]string{"repository": {"shop/api"}, "ref": {"refs/tags/v1"}, "teams": {"shop", "web"}, "empty": {""}, "none": {}},
	}
	ann := Caller{User: "ann", Groups: []string{"dev", "ops"}}
	robot := Caller{User: "system:serviceaccount:ci:deployer", Groups: []string{"system:serviceaccounts"}}
	// The same pipeline as release, whom the hub's API server gave a name.
	aggregated := release
	aggregated.User, aggregated.Groups = "ann", []string{"dev"}

	for name, test := range map[string]struct {
		subject string
		caller  Caller
		want    int // the specificity; -1: no match
		reason  string
	}{
		"issuer":                                    {`{issuer: https://ci.example}`, release, 1, "matches"},
		"another issuer":                            {`{issuer: https://other.example}`, release, -1, "issuer is another"},
		"an issuer with a slash more":               {`{issuer: https://ci.example/}`, release, -1, "issuer is another"},
		"an issuer against a hub user":              {`{issuer: https://ci.example}`, ann, -1, "issuer is another"},
		"subject":                                   {`{issuer: https://ci.example, subject: 'repo:shop/api'}`, release, 2, "matches"},
		"another subject":                           {`{issuer: https://ci.example, subject: 'repo:shop/ap'}`, release, -1, "subject is another"},
		"each claim counts":                         {`{issuer: https://ci.example, claims: {repository: shop/api, ref: refs/tags/v1}}`, release, 3, "matches"},
		"all claims must match":                     {`{issuer: https://ci.example, claims: {repository: shop/api, ref: refs/tags/v2}}`, release, -1, `claim "ref" is missing or has another value`},
		"a claim that is missing":                   {`{issuer: https://ci.example, claims: {environment: prod}}`, release, -1, `claim "environment" is missing or has another value`},
		"a missing claim isn't an empty one":        {`{issuer: https://ci.example, claims: {environment: ''}}`, release, -1, `claim "environment" is missing or has another value`},
		"a claim without values isn't an empty one": {`{issuer: https://ci.example, claims: {none: ''}}`, release, -1, `claim "none" is missing or has another value`},
		"an empty claim":                            {`{issuer: https://ci.example, claims: {empty: ''}}`, release, 2, "matches"},
		"one value of a list":                       {`{issuer: https://ci.example, claims: {teams: web}}`, release, 2, "matches"},
		"not the list as text":                      {`{issuer: https://ci.example, claims: {teams: 'shop,web'}}`, release, -1, `claim "teams" is missing or has another value`},
		"the claims iss and sub":                    {`{issuer: https://ci.example, claims: {iss: https://ci.example, sub: 'repo:shop/api'}}`, release, 3, "matches"},

		"user":                       {`{users: [bob, ann]}`, ann, 1, "matches"},
		"another user":               {`{users: [bob]}`, ann, -1, "none of users is the caller's"},
		"group":                      {`{groups: [admins, ops]}`, ann, 1, "matches"},
		"another group":              {`{groups: [admins]}`, ann, -1, "none of groups is the caller's"},
		"user and group":             {`{users: [ann], groups: [dev, ops]}`, ann, 2, "matches"},
		"a user not of the group":    {`{users: [ann], groups: [admins]}`, ann, -1, "none of groups is the caller's"},
		"ServiceAccount":             {`{serviceAccounts: [{namespace: ci, name: deployer}]}`, robot, 1, "matches"},
		"of another namespace":       {`{serviceAccounts: [{namespace: cd, name: deployer}]}`, robot, -1, "none of serviceAccounts is the caller's"},
		"a ServiceAccount as a user": {`{users: ['system:serviceaccount:ci:deployer'], serviceAccounts: [{namespace: ci, name: deployer}]}`, robot, 2, "matches"},

		"users against a pipeline of the name":    {`{users: [ann]}`, aggregated, -1, "users, groups and serviceAccounts are for callers of the hub's own, and this is a pipeline"},
		"groups against a pipeline of the group":  {`{groups: [dev]}`, aggregated, -1, "users, groups and serviceAccounts are for callers of the hub's own, and this is a pipeline"},
		"the group of pipelines":                  {`{groups: ['cellcast.io:pipelines']}`, release, -1, "users, groups and serviceAccounts are for callers of the hub's own, and this is a pipeline"},
		"claims of a pipeline that came the long": {`{issuer: https://ci.example, claims: {repository: shop/api}}`, aggregated, 2, "matches"},

		"expression":                             {`{expression: "user == 'ann'"}`, ann, 1, "matches"},
		"an expression on claims":                {`{issuer: https://ci.example, expression: "claims.ref.startsWith('refs/tags/v')"}`, release, 2, "matches"},
		"an expression that is false":            {`{issuer: https://ci.example, expression: "claims.ref.startsWith('refs/heads/')"}`, release, -1, "expression is false"},
		"an expression on a missing claim":       {`{issuer: https://ci.example, expression: "claims.environment == 'prod'"}`, release, -1, `expression failed with "no such key: environment"`},
		"a claim of several values isn't single": {`{issuer: https://ci.example, expression: "claims.teams == 'shop'"}`, release, -1, `expression failed with "no such key: teams"`},
		"a claim of several values as a list":    {`{issuer: https://ci.example, expression: "'web' in claimLists.teams"}`, release, 2, "matches"},
		"has asks for a claim":                   {`{issuer: https://ci.example, expression: "!has(claims.environment)"}`, release, 2, "matches"},
		"an expression beside users":             {`{users: [ann], groups: [dev], expression: "'ops' in groups"}`, ann, 3, "matches"},
		"expressions see iss and sub":            {`{expression: "claims.iss == 'https://ci.example' && claims.sub == 'repo:shop/api'"}`, release, 1, "matches"},
		"a hub user has no iss":                  {`{expression: "'iss' in claims || 'sub' in claimLists"}`, Caller{User: "ann", Claims: map[string][]string{"iss": {"x"}, "sub": {"y"}}}, -1, "expression is false"},
	} {
		t.Run(name, func(t *testing.T) {
			s := compile(t, "p", "subjects: ["+test.subject+"]"+rest).subjects[0]
			m := s.mismatch(&test.caller, &variables{})
			got := -1
			if m.none() {
				got = s.specificity
			}
			if got != test.want || m.String() != test.reason {
				t.Errorf("specificity %d, %q; want %d, %q", got, m, test.want, test.reason)
			}
		})
	}
}

func TestZeroValuesMatchNobody(t *testing.T) {
	if (&subject{}).mismatch(&Caller{}, &variables{}).none() {
		t.Error("a subject without constraints matches")
	}
	if (&workloads{}).match("") || (&workloads{}).match("api") {
		t.Error("no workloads match a workload")
	}
	if r, refused := (&Set{}).Govern(pipeline("shop/api"), "api"); refused == nil {
		t.Errorf("a set without policies yields %v", r)
	}
	if r, refused := NewSet([]*Policy{{Name: "zero"}}).Govern(Caller{}, ""); refused == nil {
		t.Errorf("a policy that nobody compiled governs: %v", r)
	}
}

func TestCallerIsNamedByItsIdentityAlone(t *testing.T) {
	for want, caller := range map[string]Caller{
		`subject "repo:shop/api" of issuer "https://ci.example"`: pipeline("shop/api"),
		`user "ann"`: {User: "ann", Groups: []string{"dev"}, Claims: map[string][]string{"x": {"y"}}},
		`user ""`:    {},
		`subject "a\nb" of issuer "` + strings.Repeat("i", 256) + `"...`: {Issuer: strings.Repeat("i", 257), Subject: "a\nb"},
		`user "` + strings.Repeat("u", 255) + `"...`:                     {User: strings.Repeat("u", 255) + "é"},
	} {
		if got := caller.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
