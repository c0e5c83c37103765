package stanza_test

// shape is a token as the documentation of a CI platform shows it.
type shape struct {
	issuer string
	// full has every claim that the documentation names, and least the ones
	// that a job always has, those that may be null being null.
	full, least map[string]any
	user        string
	// wantFull and wantLeast are the claims that policies see, besides iss and sub.
	wantFull, wantLeast map[string][]string
	// id and name are the claims that a policy would pin: by the one it's for
	// this project alone, by the other for whoever has the name. reborn is the id
	// of the project of that name which is made after this one is gone.
	id, name, reborn string
}

const circleOrganization = "e2a1c5d0-7c2f-4a55-9d3f-0f5d2f9d6b10"

var shapes = map[string]shape{
	"github": {
		issuer: "https://token.actions.githubusercontent.com",
		full: map[string]any{
			"sub": "repo:acme@65/shop@74:environment:Production", "jti": "example-id",
			"repository": "acme/shop", "repository_id": "74", "repository_owner": "acme", "repository_owner_id": "65",
			"repository_visibility": "private", "enterprise": "acme-corp", "enterprise_id": "17",
			"ref": "refs/heads/main", "ref_type": "branch", "base_ref": "main", "head_ref": "fix", "environment": "Production",
			"event_name": "push", "workflow": "deploy", "workflow_ref": "acme/shop/.github/workflows/deploy.yml@refs/heads/main", "workflow_sha": "aa11",
			"job_workflow_ref": "acme/ci/.github/workflows/deploy.yml@refs/tags/v1", "job_workflow_sha": "bb22",
			"actor": "octocat", "actor_id": "12", "runner_environment": "github-hosted",
			"run_id": "123456", "run_number": "10", "run_attempt": "2", "sha": "cc33", "check_run_id": "5", "repo_property_team": "shop",
		},
		least: map[string]any{
			"sub": "repo:acme/shop:ref:refs/heads/main", "repository": "acme/shop", "repository_id": "74",
			"repository_owner": "acme", "repository_owner_id": "65", "ref": "refs/heads/main", "base_ref": "", "head_ref": "",
		},
		user: "repo:acme@65/shop@74:environment:Production",
		wantFull: map[string][]string{
			"repository": {"acme/shop"}, "repository_id": {"74"}, "repository_owner": {"acme"}, "repository_owner_id": {"65"},
			"repository_visibility": {"private"}, "enterprise": {"acme-corp"}, "enterprise_id": {"17"},
			"ref": {"refs/heads/main"}, "ref_type": {"branch"}, "base_ref": {"main"}, "head_ref": {"fix"}, "environment": {"Production"},
			"event_name": {"push"}, "workflow": {"deploy"}, "workflow_ref": {"acme/shop/.github/workflows/deploy.yml@refs/heads/main"}, "workflow_sha": {"aa11"},
			"job_workflow_ref": {"acme/ci/.github/workflows/deploy.yml@refs/tags/v1"}, "job_workflow_sha": {"bb22"},
			"actor": {"octocat"}, "actor_id": {"12"}, "runner_environment": {"github-hosted"},
		},
		wantLeast: map[string][]string{
			"repository": {"acme/shop"}, "repository_id": {"74"}, "repository_owner": {"acme"}, "repository_owner_id": {"65"}, "ref": {"refs/heads/main"},
		},
		id: "repository_id", name: "repository", reborn: "75",
	},
	"gitlab": {
		issuer: "https://gitlab.example.com",
		full: map[string]any{
			"sub": "project_path:acme/shop:ref_type:branch:ref:main", "jti": "235b3a54",
			"namespace_id": "72", "namespace_path": "acme", "project_id": "20", "project_path": "acme/shop",
			"job_namespace_id": "72", "job_namespace_path": "acme", "job_project_id": "20", "job_project_path": "acme/shop",
			"user_id": "1", "user_login": "ann", "user_email": "ann@example.com", "user_access_level": "owner",
			"user_identities": []any{map[string]any{"provider": "github", "extern_uid": "2435223452345"}},
			"pipeline_id":     "574", "pipeline_source": "push", "job_id": "302",
			"ref": "main", "ref_type": "branch", "ref_path": "refs/heads/main", "ref_protected": "true",
			"groups_direct": []any{"acme"}, "environment": "prod", "environment_protected": "true", "deployment_tier": "production", "environment_action": "start",
			"runner_id": 12270835, "runner_environment": "self-hosted", "sha": "714a", "project_visibility": "private",
			"ci_config_ref_uri": "gitlab.example.com/acme/shop//.gitlab-ci.yml@refs/heads/main", "ci_config_sha": "714a",
		},
		least: map[string]any{
			"sub": "project_path:acme/shop:ref_type:branch:ref:main", "namespace_id": "72", "namespace_path": "acme",
			"project_id": "20", "project_path": "acme/shop", "ref": "main", "ref_type": "branch", "ref_protected": false,
			"ci_config_ref_uri": nothing, "ci_config_sha": nothing, "runner_id": nothing,
		},
		user: "project_path:acme/shop:ref_type:branch:ref:main",
		wantFull: map[string][]string{
			"namespace_id": {"72"}, "namespace_path": {"acme"}, "project_id": {"20"}, "project_path": {"acme/shop"},
			"job_namespace_id": {"72"}, "job_namespace_path": {"acme"}, "job_project_id": {"20"}, "job_project_path": {"acme/shop"},
			"user_id": {"1"}, "user_login": {"ann"}, "user_access_level": {"owner"}, "pipeline_source": {"push"},
			"ref": {"main"}, "ref_type": {"branch"}, "ref_path": {"refs/heads/main"}, "ref_protected": {"true"},
			"environment": {"prod"}, "environment_protected": {"true"}, "deployment_tier": {"production"}, "environment_action": {"start"},
			"runner_id": {"12270835"}, "runner_environment": {"self-hosted"}, "project_visibility": {"private"},
			"ci_config_ref_uri": {"gitlab.example.com/acme/shop//.gitlab-ci.yml@refs/heads/main"}, "ci_config_sha": {"714a"},
		},
		wantLeast: map[string][]string{
			"namespace_id": {"72"}, "namespace_path": {"acme"}, "project_id": {"20"}, "project_path": {"acme/shop"},
			"ref": {"main"}, "ref_type": {"branch"}, "ref_protected": {"false"},
		},
		id: "project_id", name: "project_path", reborn: "21",
	},
	"buildkite": {
		issuer: "https://agent.buildkite.com",
		full: map[string]any{
			"sub": "organization:acme:pipeline:shop:ref:refs/heads/main:commit:9f31:step:deploy", "jti": "0194b014",
			"organization_slug": "acme", "organization_id": "0184990a-0001", "pipeline_slug": "shop", "pipeline_id": "0184990a-0002",
			"build_number": 1, "build_branch": "main", "build_tag": "v1.0.0", "build_commit": "9f31", "build_source": "ui", "step_key": "deploy",
			"cluster_id": "0191f956-0003", "cluster_name": "default", "queue_id": "0191f956-0004", "queue_key": "runners",
			"runner_environment": "self-hosted", "build_id": "0005", "job_id": "0006", "agent_id": "0007", "agent_tag:queue": "runners",
		},
		least: map[string]any{
			"sub":               "organization:acme:pipeline:shop:ref:refs/heads/main:commit:9f31:step:",
			"organization_slug": "acme", "pipeline_slug": "shop", "build_number": 1, "build_branch": "main",
			"build_tag": nothing, "step_key": nothing,
		},
		user: "organization:acme:pipeline:shop:ref:refs/heads/main:commit:9f31:step:deploy",
		wantFull: map[string][]string{
			"organization_slug": {"acme"}, "organization_id": {"0184990a-0001"}, "pipeline_slug": {"shop"}, "pipeline_id": {"0184990a-0002"},
			"build_branch": {"main"}, "build_tag": {"v1.0.0"}, "build_source": {"ui"}, "step_key": {"deploy"},
			"cluster_id": {"0191f956-0003"}, "cluster_name": {"default"}, "queue_id": {"0191f956-0004"}, "queue_key": {"runners"},
			"runner_environment": {"self-hosted"},
		},
		wantLeast: map[string][]string{"organization_slug": {"acme"}, "pipeline_slug": {"shop"}, "build_branch": {"main"}},
		id:        "pipeline_id", name: "pipeline_slug", reborn: "0184990a-0009",
	},
	"circleci": {
		issuer: "https://oidc.circleci.com/org/" + circleOrganization,
		full: map[string]any{
			"sub":                                      "org/" + circleOrganization + "/project/p-1/user/u-1/vcs-origin/github.com/acme/shop/vcs-ref/refs/heads/main",
			"oidc.circleci.com/org-id":                 circleOrganization,
			"oidc.circleci.com/project-id":             "p-1",
			"oidc.circleci.com/pipeline-id":            "r-1",
			"oidc.circleci.com/pipeline-definition-id": "d-1",
			"oidc.circleci.com/vcs-origin":             "github.com/acme/shop",
			"oidc.circleci.com/vcs-ref":                "refs/heads/main",
			"oidc.circleci.com/context-ids":            []any{"c-1", "c-2"},
			"oidc.circleci.com/ssh-rerun":              false,
		},
		least: map[string]any{
			"sub":                           "org/" + circleOrganization + "/project/p-1/user/u-1",
			"oidc.circleci.com/project-id":  "p-1",
			"oidc.circleci.com/context-ids": []any{},
		},
		user: "org/" + circleOrganization + "/project/p-1/user/u-1/vcs-origin/github.com/acme/shop/vcs-ref/refs/heads/main",
		wantFull: map[string][]string{
			"oidc.circleci.com/org-id":                 {circleOrganization},
			"oidc.circleci.com/project-id":             {"p-1"},
			"oidc.circleci.com/pipeline-definition-id": {"d-1"},
			"oidc.circleci.com/vcs-origin":             {"github.com/acme/shop"},
			"oidc.circleci.com/vcs-ref":                {"refs/heads/main"},
			"oidc.circleci.com/context-ids":            {"c-1", "c-2"},
			"oidc.circleci.com/ssh-rerun":              {"false"},
		},
		wantLeast: map[string][]string{"oidc.circleci.com/project-id": {"p-1"}},
		id:        "oidc.circleci.com/project-id", name: "oidc.circleci.com/vcs-origin", reborn: "p-2",
	},
	"kubernetes": {
		issuer: "https://kubernetes.default.svc.cluster.local",
		full: map[string]any{
			"sub": "system:serviceaccount:ci:deployer", "jti": "e51f1fbc",
			"kubernetes.io": map[string]any{
				"namespace":      "ci",
				"serviceaccount": map[string]any{"name": "deployer", "uid": "sa-1"},
				"pod":            map[string]any{"name": "job-x", "uid": "pod-1"},
				"node":           map[string]any{"name": "node-1", "uid": "node-uid-1"},
				"warnafter":      1717674962,
			},
		},
		least: map[string]any{
			"sub":           "system:serviceaccount:ci:deployer",
			"kubernetes.io": map[string]any{"namespace": "ci", "serviceaccount": map[string]any{"name": "deployer", "uid": "sa-1"}},
		},
		user: "serviceaccount:ci:deployer",
		wantFull: map[string][]string{
			"kubernetes.io/namespace":           {"ci"},
			"kubernetes.io/serviceaccount/name": {"deployer"}, "kubernetes.io/serviceaccount/uid": {"sa-1"},
			"kubernetes.io/pod/name": {"job-x"}, "kubernetes.io/pod/uid": {"pod-1"},
			"kubernetes.io/node/name": {"node-1"}, "kubernetes.io/node/uid": {"node-uid-1"},
		},
		wantLeast: map[string][]string{
			"kubernetes.io/namespace":           {"ci"},
			"kubernetes.io/serviceaccount/name": {"deployer"}, "kubernetes.io/serviceaccount/uid": {"sa-1"},
		},
		id: "kubernetes.io/serviceaccount/uid", name: "kubernetes.io/serviceaccount/name",
		reborn: "sa-2",
	},
	"generic": {
		issuer:    "https://ci.example.com",
		full:      map[string]any{"sub": "job/shop", "project_id": "12"},
		least:     map[string]any{"sub": "job/shop"},
		user:      "job/shop",
		wantFull:  map[string][]string{},
		wantLeast: map[string][]string{},
	},
}
