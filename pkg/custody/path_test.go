package custody

import (
	"strings"
	"testing"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

func TestPathAllowed(t *testing.T) {
	user := func(name string) registryv1alpha1.TargetOwner { return registryv1alpha1.TargetOwner{User: name} }
	group := func(name string) registryv1alpha1.TargetOwner { return registryv1alpha1.TargetOwner{Group: name} }
	tests := map[string]struct {
		owner registryv1alpha1.TargetOwner
		path  string
		ok    bool
	}{
		"a user's":                               {user("alice"), "users/alice/eu", true},
		"a user's, deeper":                       {user("alice"), "users/alice/prod/eu-1_a.b~c@d:e+f=g", true},
		"a group's":                              {group("payments-admins"), "groups/payments-admins/eu", true},
		"of a mail address":                      {user("alice@acme.example"), "users/alice@acme.example/eu", true},
		"of a ServiceAccount":                    {user("system:serviceaccount:ci:deployer"), "users/system:serviceaccount:ci:deployer/eu", true},
		"of a name with slashes, escaped":        {user("https://idp.acme.example#alice"), "users/https:%2F%2Fidp.acme.example%23alice/eu", true},
		"of a name with a blank, escaped":        {group("payments team"), "groups/payments%20team/eu", true},
		"dots in a segment":                      {user("alice"), "users/alice/..eu/v1..2/.x", true},
		"a name that begins with dots":           {user("..alice"), "users/..alice/eu", true},
		"somebody else's":                        {user("alice"), "users/bob/eu", false},
		"somebody's whose name begins so":        {user("alice"), "users/alice2/eu", false},
		"the group of the same name":             {user("alice"), "groups/alice/eu", false},
		"the user of the same name":              {group("alice"), "users/alice/eu", false},
		"the prefix alone":                       {user("alice"), "users/alice/", false},
		"the prefix without its slash":           {user("alice"), "users/alice", false},
		"a leading slash":                        {user("alice"), "/users/alice/eu", false},
		"another case":                           {user("alice"), "Users/alice/eu", false},
		"a slash too many before":                {user("alice"), "users//alice/eu", false},
		"a slash too many within":                {user("alice"), "users/alice//eu", false},
		"a slash at the end":                     {user("alice"), "users/alice/eu/", false},
		"climbing":                               {user("alice"), "users/alice/../bob/eu", false},
		"climbing at the end":                    {user("alice"), "users/alice/eu/..", false},
		"staying":                                {user("alice"), "users/alice/./eu", false},
		"three dots":                             {user("alice"), "users/alice/.../eu", false},
		"climbing, escaped":                      {user("alice"), "users/alice/%2e%2e/bob/eu", false},
		"climbing, half escaped":                 {user("alice"), "users/alice/.%2E/bob/eu", false},
		"climbing, escaped twice":                {user("alice"), "users/alice/%252e%252e/bob/eu", false},
		"a slash, escaped":                       {user("alice"), "users/alice/..%2Fbob%2Feu", false},
		"a backslash":                            {user("alice"), `users/alice/..\bob`, false},
		"a query":                                {user("alice"), "users/alice/eu?version=1", false},
		"a fragment":                             {user("alice"), "users/alice/eu#x", false},
		"a null":                                 {user("alice"), "users/alice/eu\x00", false},
		"a line break":                           {user("alice"), "users/alice/eu\n", false},
		"a blank":                                {user("alice"), "users/alice/eu ", false},
		"a letter that only looks like one":      {user("alice"), "users/alice/\uff0e\uff0e/bob", false},
		"a name with slashes, not escaped":       {user("https://idp#alice"), "users/https://idp#alice/eu", false},
		"a name with slashes, in another escape": {user("a/b"), "users/a%2fb/eu", false},
		"a name with slashes, escaped twice":     {user("a/b"), "users/a%252Fb/eu", false},
		"a mail address, escaped for no reason":  {user("a@b"), "users/a%40b/eu", false},
		"an owner whose name is an escape":       {user("a%2Fb"), "users/a%252Fb/eu", false},
		"an owner whose name is dots":            {user(".."), "users/../groups/x", false},
		"an owner whose name is a dot":           {group("."), "groups/./x", false},
		"an owner whose name climbs":             {user("alice/../bob"), "users/alice%2F..%2Fbob/eu", false},
		"an owner whose name has a backslash":    {user(`a\b`), "users/a%5Cb/eu", false},
		"an owner whose name has a line break":   {user("a\nb"), "users/a%0Ab/eu", false},
		"no owner":                               {registryv1alpha1.TargetOwner{}, "users//eu", false},
		"two owners":                             {registryv1alpha1.TargetOwner{User: "alice", Group: "a"}, "users/alice/eu", false},
		"no path":                                {user("alice"), "", false},
		"what may be a token":                    {user("alice"), "eyJ-canary", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := PathAllowed(test.owner, test.path)
			if (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error quotes the path: %v", err)
			}
		})
	}
}
