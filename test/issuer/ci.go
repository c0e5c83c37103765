package issuer

// Run is a CI job of a repository, for CIClaims.
type Run struct {
	// Repository is owner/name, and RepositoryID its number.
	Repository   string
	RepositoryID string
	Owner        string
	OwnerID      string
	// Ref is a full git ref such as refs/heads/main.
	Ref string
	// Environment is the deployment environment; empty for none.
	Environment string
	// Audience is what the token is asked for.
	Audience string
}

// CIClaims returns the claims that GitHub Actions puts into a job's token, by
// the names of its documentation ("OpenID Connect reference"). Their values
// are strings, the numbers too.
func CIClaims(r Run) map[string]any {
	claims := map[string]any{
		"aud":                   r.Audience,
		"sub":                   "repo:" + r.Repository + ":ref:" + r.Ref,
		"ref":                   r.Ref,
		"repository":            r.Repository,
		"repository_id":         r.RepositoryID,
		"repository_owner":      r.Owner,
		"repository_owner_id":   r.OwnerID,
		"repository_visibility": "private",
		"actor":                 "octocat",
		"actor_id":              "583231",
		"event_name":            "push",
		"run_id":                "1234567890",
		"run_number":            "17",
		"run_attempt":           "1",
		"runner_environment":    "self-hosted",
		"sha":                   "5f2c1c1b1f0a4e7b8d9c0a1b2c3d4e5f60718293",
		"workflow":              "deploy",
		"workflow_ref":          r.Repository + "/.github/workflows/deploy.yml@" + r.Ref,
		"job_workflow_ref":      r.Repository + "/.github/workflows/deploy.yml@" + r.Ref,
		"jti":                   "example-" + r.RepositoryID,
	}
	if r.Environment != "" {
		claims["environment"] = r.Environment
		claims["sub"] = "repo:" + r.Repository + ":environment:" + r.Environment
	}
	return claims
}
