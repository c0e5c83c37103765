package caller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/user"

	"cellcast.io/cellcast/pkg/policy"
)

func TestFrom(t *testing.T) {
	tests := map[string]struct {
		user user.Info
		want Identity
	}{
		"nobody has no class": {nil, Identity{}},
		"a hub user has names and no issuer": {
			&user.DefaultInfo{Name: "ada", Groups: []string{"ops"}, Extra: map[string][]string{"scopes": {"a"}}},
			Identity{Class: ClassHubUser, Caller: policy.Caller{User: "ada", Groups: []string{"ops"}, Claims: map[string][]string{}}}},
		"a pipeline that came through aggregation has its issuer and claims": {
			&user.DefaultInfo{Name: "ci:shop", Extra: map[string][]string{
				"claims.cellcast.io/iss": {"https://ci"}, "claims.cellcast.io/sub": {"shop"}, "claims.cellcast.io/ref": {"main"}}},
			Identity{Class: ClassHubUser, Caller: policy.Caller{User: "ci:shop", Issuer: "https://ci", Subject: "shop",
				Claims: map[string][]string{"iss": {"https://ci"}, "sub": {"shop"}, "ref": {"main"}}}}},
		"two issuers are none": {
			&user.DefaultInfo{Name: "x", Extra: map[string][]string{"claims.cellcast.io/iss": {"https://a", "https://b"}}},
			Identity{Class: ClassHubUser, Caller: policy.Caller{User: "x", Claims: map[string][]string{"iss": {"https://a", "https://b"}}}}},
		"names don't make a reporter or a pipeline": {
			&user.DefaultInfo{Name: "cellcast.io:reporter:eu-1", Groups: []string{"cellcast.io:reporters", "cellcast.io:pipelines"}},
			Identity{Class: ClassHubUser, Caller: policy.Caller{User: "cellcast.io:reporter:eu-1",
				Groups: []string{"cellcast.io:reporters", "cellcast.io:pipelines"}, Claims: map[string][]string{}}}},
		"a pipeline's names carry its issuer": {
			&Pipeline{Issuer: "https://ci", Subject: "shop", Name: "deployer", Groups: []string{"octo-org"}, Extra: map[string][]string{"claims.cellcast.io/ref": {"main"}}},
			Identity{Class: ClassPipeline, Caller: policy.Caller{User: "pipeline:https://ci#deployer",
				Groups: []string{"pipeline:https://ci#octo-org", "cellcast.io:pipelines", "system:authenticated"}, Issuer: "https://ci", Subject: "shop",
				Claims: map[string][]string{"iss": {"https://ci"}, "sub": {"shop"}, "ref": {"main"}}}}},
		"a reporter has a cell and nothing that a policy could match": {
			&Reporter{Cell: "eu-1"},
			Identity{Class: ClassReporter, Cell: "eu-1", Caller: policy.Caller{User: "cellcast.io:reporter:eu-1", Groups: []string{"cellcast.io:reporters", "system:authenticated"}}}},
		"a replica has nothing that a policy could match, and not the hub's own name": {
			&Peer{Subject: "system:serviceaccount:cellcast-system:cellcast-hub"},
			Identity{Class: ClassPeer, Caller: policy.Caller{User: "cellcast.io:peer:system:serviceaccount:cellcast-system:cellcast-hub",
				Groups: []string{"cellcast.io:peers", "system:authenticated"}}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, From(tc.user)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPipelineExtraIsNotShared(t *testing.T) {
	p := &Pipeline{Issuer: "https://ci", Subject: "shop", Extra: map[string][]string{"claims.cellcast.io/ref": {"main"}}}
	p.GetExtra()["claims.cellcast.io/ref"] = []string{"other"}
	want := map[string][]string{"claims.cellcast.io/ref": {"main"}}
	if diff := cmp.Diff(want, p.Extra); diff != "" {
		t.Errorf("GetExtra let its caller change the pipeline (-want +got):\n%s", diff)
	}
}
