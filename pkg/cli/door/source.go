package door

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// SourceHelp says where the token of the direct door comes from, for the help
// of a command.
const SourceHelp = `The token for --hub is the first of these that there is:

  1. the file of --token-file, or the variable that --token-env names
  2. the file that $CELLCAST_TOKEN_FILE names, or the token in $CELLCAST_TOKEN
  3. what GitHub Actions issues to a job with the permission id-token: write
  4. what Buildkite issues to a job, by its program buildkite-agent

The last two are asked for --audience. No flag holds a token: it would be in the
list of processes.
`

// fetchTimeout is how long a CI platform has to issue a token.
const fetchTimeout = 10 * time.Second

// job is the CI job that the client runs in. The zero values of what the tests
// set are what a real job has.
type job struct {
	getenv func(string) string
	// transport reaches GitHub; nil means net/http's own, which takes the
	// standard proxy variables.
	transport http.RoundTripper
	// agent is Buildkite's program; empty means the one on the PATH.
	agent string
}

// source is where the token comes from.
type source struct {
	// phrase names it in a sentence.
	phrase string
	read   func(context.Context) (Token, error)
}

// source chooses where the token comes from, in the order of SourceHelp, and
// reads none yet. What the user named wins over what is there anyway.
func (f Flags) source(j job) (source, error) {
	fileVariable, variable := j.getenv(EnvTokenFile), j.getenv(EnvToken)
	explicit := f.TokenFile != "" || f.TokenEnv != ""
	switch {
	case f.TokenFile != "" && f.TokenEnv != "":
		return source{}, &UsageError{"--token-file and --token-env each name a token: leave out one"}
	case !explicit && fileVariable != "" && variable != "":
		return source{}, &UsageError{"$" + EnvTokenFile + " and $" + EnvToken + " each name a token: unset one, or use --token-file or --token-env"}
	case f.Audience != "" && (explicit || fileVariable != "" || variable != ""):
		return source{}, &UsageError{"--audience is for a token that is fetched, and there is one already: leave it out, or ask the CI platform for that audience"}
	}
	audience := first(f.Audience, j.getenv(EnvAudience), DefaultAudience)
	switch {
	case f.TokenFile != "":
		return fromFile(f.TokenFile), nil
	case f.TokenEnv != "":
		return fromVariable(f.TokenEnv, j.getenv)
	case fileVariable != "":
		return fromFile(fileVariable), nil
	case variable != "":
		return fromVariable(EnvToken, j.getenv)
	case j.getenv(envGitHubURL) != "" && j.getenv(envGitHubToken) != "":
		return fromGitHub(j, audience), nil
	case j.getenv(envBuildkite) == "true" && j.getenv(envBuildkiteToken) != "":
		return fromBuildkite(j, audience), nil
	default:
		return source{}, &UsageError{nothingGiven}
	}
}

// nothingGiven names every way to a token.
const nothingGiven = "--hub needs the job's OIDC token, and there is none. Give it by --token-file FILE or $" + EnvTokenFile + "; " +
	"in the variable $" + EnvToken + ", as with GitLab's id_tokens, or one that --token-env names; " +
	"on GitHub Actions give the job the permission id-token: write; " +
	"on Buildkite run in the job's own environment, with $" + envBuildkiteToken

func fromFile(path string) source {
	return source{
		phrase: "the token in " + path,
		read:   func(context.Context) (Token, error) { return readToken(path) },
	}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// fromVariable doesn't repeat a name that is none: it may be a token, from a $
// too many.
func fromVariable(name string, getenv func(string) string) (source, error) {
	if !variableName.MatchString(name) {
		return source{}, &UsageError{"--token-env takes the name of a variable, such as " + EnvToken + ", and not what is in it"}
	}
	return source{phrase: "the token in $" + name, read: func(context.Context) (Token, error) {
		value := getenv(name)
		if value == "" {
			return Token{}, fmt.Errorf("the variable %s, where the job's OIDC token should be, is empty or unset", name)
		}
		token, err := parseToken(value)
		if err != nil {
			return Token{}, fmt.Errorf("the variable %s %w", name, err)
		}
		return token, nil
	}}, nil
}

// fetched is a source that a CI platform has to be asked for, in time.
func fetched(platform string, fetch func(context.Context) (string, error)) source {
	return source{phrase: "the token of " + platform, read: func(ctx context.Context) (Token, error) {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		content, err := fetch(ctx)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return Token{}, fmt.Errorf("%s issued no token within %s", platform, fetchTimeout)
		}
		if err != nil {
			return Token{}, fmt.Errorf("%s issued no token: %w", platform, err)
		}
		token, err := parseToken(content)
		if err != nil {
			return Token{}, fmt.Errorf("what %s issued %w", platform, err)
		}
		return token, nil
	}}
}
