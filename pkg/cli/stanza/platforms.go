package stanza

import (
	"maps"
	"slices"
)

// platform is what the documentation of a CI platform says of its tokens.
type platform struct {
	title string
	// issuer is the only one there is, or the usual one; empty where each
	// installation has its own.
	issuer string
	// whichIssuer says what to give where there is none.
	whichIssuer string
	notes       []string
	// rule is CEL that lets in one organisation of an issuer that many share.
	rule string
	// name is CEL for the username; empty means the subject as it is.
	name   string
	claims []claim
}

// Names are the platforms that Write knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(platforms)) }

func (p platform) username() string {
	if p.name == "" {
		return "claims.sub"
	}
	return p.name
}

// platforms are by the name that the user gives. Left out of each are claims
// that differ from run to run: no policy can name them.
var platforms = map[string]platform{
	// docs.github.com, "OpenID Connect reference".
	"github": {
		title:  "GitHub Actions",
		issuer: "https://token.actions.githubusercontent.com",
		notes: []string{
			"",
			"Pin repository_id, or repository_owner_id, in policies: a repository of the",
			"same name that is made after yours is gone has another id. A GitHub Enterprise",
			"Server is an issuer of its own: --issuer https://HOST/_services/token.",
		},
		rule: `claims.repository_owner_id == "123456"`,
		claims: texts("repository", "repository_id", "repository_owner", "repository_owner_id", "repository_visibility",
			"enterprise", "enterprise_id", "ref", "ref_type", "base_ref", "head_ref", "environment", "event_name",
			"workflow", "workflow_ref", "workflow_sha", "job_workflow_ref", "job_workflow_sha",
			"actor", "actor_id", "runner_environment"),
	},
	// docs.gitlab.com, "OpenID Connect (OIDC) authentication using ID tokens".
	"gitlab": {
		title:  "GitLab CI/CD",
		issuer: "https://gitlab.com",
		notes: []string{
			"",
			"Pin project_id, or namespace_id, in policies: a path goes to whoever takes it",
			"next. In a merge request from a fork project_id is the fork's. A GitLab of",
			"your own is an issuer of its own: --issuer https://gitlab.example.com.",
		},
		rule: `claims.namespace_id == "123456"`,
		claims: slices.Concat(
			texts("project_path", "project_id", "namespace_path", "namespace_id", "project_visibility",
				"job_project_path", "job_project_id", "job_namespace_path", "job_namespace_id", "ref", "ref_type", "ref_path"),
			[]claim{{path: []string{"ref_protected"}, kind: flag}},
			texts("environment"),
			[]claim{{path: []string{"environment_protected"}, kind: flag}},
			texts("deployment_tier", "environment_action", "pipeline_source", "ci_config_ref_uri", "ci_config_sha",
				"user_login", "user_id", "user_access_level", "runner_environment"),
			[]claim{{path: []string{"runner_id"}, kind: number}},
		),
	},
	// buildkite.com/docs, "buildkite-agent oidc".
	"buildkite": {
		title:  "Buildkite",
		issuer: "https://agent.buildkite.com",
		notes: []string{
			"",
			"Pin pipeline_id and organization_id in policies: a slug goes to whoever takes it",
			"next. Both are in a token on request alone; cellcast requests them. Every",
			"organization has the same issuer, so a slug of a pipeline alone means nothing.",
		},
		rule: `claims.?organization_id.orValue("") == "0184990a-477b-4fa8-9968-496074483cee"`,
		claims: texts("organization_slug", "organization_id", "pipeline_slug", "pipeline_id", "build_branch", "build_tag",
			"build_source", "step_key", "cluster_id", "cluster_name", "queue_id", "queue_key", "runner_environment"),
	},
	// circleci.com/docs, "Using OpenID Connect tokens in jobs".
	"circleci": {
		title:       "CircleCI",
		whichIssuer: "https://oidc.circleci.com/org/ORGANIZATION_ID",
		notes: []string{
			"",
			"Pin oidc.circleci.com/project-id in policies: vcs-origin is a name. The tokens",
			"that a job has anyway are for the organization's id: give it as --audience, or",
			"let the job get one for the hub by circleci run oidc get.",
		},
		claims: slices.Concat(
			texts("oidc.circleci.com/org-id", "oidc.circleci.com/project-id", "oidc.circleci.com/pipeline-definition-id",
				"oidc.circleci.com/vcs-origin", "oidc.circleci.com/vcs-ref"),
			[]claim{
				{path: []string{"oidc.circleci.com/context-ids"}, kind: list},
				{path: []string{"oidc.circleci.com/ssh-rerun"}, kind: flag},
			},
		),
	},
	// kubernetes.io, "Managing Service Accounts", bound tokens.
	"kubernetes": {
		title:       "the ServiceAccounts of a cluster",
		whichIssuer: "the cluster's first --service-account-issuer: kubectl get --raw /.well-known/openid-configuration",
		notes: []string{
			"",
			"Its jobs show a projected token of this audience. Pin kubernetes.io/serviceaccount/uid",
			"in policies where an account that is deleted and made anew must not inherit; sub has",
			"its name. Names in system: are the hub's own, so system: is cut off the username.",
		},
		name: `claims.sub.startsWith("system:") ? claims.sub.substring(7) : claims.sub`,
		claims: []claim{
			{path: []string{"kubernetes.io", "namespace"}},
			{path: []string{"kubernetes.io", "serviceaccount", "name"}},
			{path: []string{"kubernetes.io", "serviceaccount", "uid"}},
			{path: []string{"kubernetes.io", "pod", "name"}},
			{path: []string{"kubernetes.io", "pod", "uid"}},
			{path: []string{"kubernetes.io", "node", "name"}},
			{path: []string{"kubernetes.io", "node", "uid"}},
		},
	},
	"generic": {
		title:       "an OIDC issuer",
		whichIssuer: "the iss of its tokens",
		notes: []string{
			"",
			"Policies can pin the subject. Map the claims that they shall see besides, ids",
			"rather than names: a name goes to whoever takes it next.",
		},
	},
}
