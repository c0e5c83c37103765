package door

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// The environments of jobs that could get a token.
var (
	onGitHub    = map[string]string{envGitHubURL: "https://runner.example.com/token?api-version=2.0", envGitHubToken: "s3cret"}
	onBuildkite = map[string]string{envBuildkite: "true", envBuildkiteToken: "s3cret"}
)

// environment is the union of maps.
func environment(parts ...map[string]string) func(string) string {
	return func(key string) string {
		for _, part := range parts {
			if value, ok := part[key]; ok {
				return value
			}
		}
		return ""
	}
}

func TestWhereTheTokenComesFrom(t *testing.T) {
	file, variable := map[string]string{EnvTokenFile: "env.jwt"}, map[string]string{EnvToken: "s3cret"}
	for name, test := range map[string]struct {
		flags Flags
		env   func(string) string
		want  string
	}{
		"a file that a flag names, whatever else there is": {Flags{TokenFile: "flag.jwt"}, environment(file, variable, onGitHub, onBuildkite), "the token in flag.jwt"},
		"a variable that a flag names, whatever else there is": {
			Flags{TokenEnv: "CIRCLE_OIDC_TOKEN_V2"}, environment(file, variable, onGitHub, onBuildkite), "the token in $CIRCLE_OIDC_TOKEN_V2"},
		"the file that the environment names, before the platform": {Flags{}, environment(file, onGitHub, onBuildkite), "the token in env.jwt"},
		"the variable of the convention, before the platform":      {Flags{}, environment(variable, onGitHub, onBuildkite), "the token in $CELLCAST_TOKEN"},
		"GitHub Actions": {Flags{}, environment(onGitHub), "the token of GitHub Actions"},
		"GitHub Actions, where the environment has an audience": {Flags{}, environment(onGitHub, map[string]string{EnvAudience: "x"}), "the token of GitHub Actions"},
		"Buildkite": {Flags{}, environment(onBuildkite), "the token of Buildkite"},
		"a file, though the environment has an audience":                {Flags{}, environment(file, map[string]string{EnvAudience: "x"}), "the token in env.jwt"},
		"the platform, for an audience that a flag names":               {Flags{Audience: "x"}, environment(onBuildkite), "the token of Buildkite"},
		"Buildkite, where GitHub's URL stands without the right to ask": {Flags{}, environment(onBuildkite, map[string]string{envGitHubURL: "https://runner.example.com"}), "the token of Buildkite"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.flags.source(job{getenv: test.env})
			if err != nil || got.phrase != test.want {
				t.Errorf("got %q, %v, want %q", got.phrase, err, test.want)
			}
		})
	}
}

func TestTokenSourcesThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		flags Flags
		env   func(string) string
		want  string
	}{
		"two flags": {Flags{TokenFile: "a", TokenEnv: "B"}, environment(), "--token-file and --token-env each name a token: leave out one"},
		"two variables": {Flags{}, environment(map[string]string{EnvTokenFile: "a", EnvToken: "s3cret"}),
			"$CELLCAST_TOKEN_FILE and $CELLCAST_TOKEN each name a token: unset one, or use --token-file or --token-env"},
		"an audience for a token that is there": {Flags{Audience: "x"}, environment(map[string]string{EnvToken: "s3cret"}),
			"--audience is for a token that is fetched, and there is one already: leave it out, or ask the CI platform for that audience"},
		"an audience for a file": {Flags{Audience: "x", TokenFile: "a"}, environment(),
			"--audience is for a token that is fetched, and there is one already: leave it out, or ask the CI platform for that audience"},
		"a token in place of a variable's name": {Flags{TokenEnv: jwt(`{"sub":"s3cret"}`)}, environment(),
			"--token-env takes the name of a variable, such as CELLCAST_TOKEN, and not what is in it"},
		"GitHub Actions without the permission":      {Flags{}, environment(map[string]string{envGitHubURL: onGitHub[envGitHubURL]}), nothingGiven},
		"a shell that only looks like Buildkite":     {Flags{}, environment(map[string]string{envBuildkiteToken: "s3cret"}), nothingGiven},
		"Buildkite in a container without its token": {Flags{}, environment(map[string]string{envBuildkite: "true"}), nothingGiven},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.flags.source(job{getenv: test.env})
			var usage *UsageError
			if !errors.As(err, &usage) || usage.Message != test.want {
				t.Fatalf("got  %v\nwant %s", err, test.want)
			}
			if strings.Contains(err.Error(), "s3cret") || slices.ContainsFunc(strings.Split(jwt(`{"sub":"s3cret"}`), "."), func(part string) bool { return strings.Contains(err.Error(), part) }) {
				t.Errorf("the error quotes a secret: %v", err)
			}
		})
	}
}

func TestTokenInAVariable(t *testing.T) {
	good := jwt(`{"iss":"https://gitlab.example.com"}`)
	env := environment(map[string]string{"GOOD": good + "\n", "BAD": "s3cret", EnvHub: "https://hub.example.com"})
	door, err := Flags{TokenEnv: "GOOD"}.Open(t.Context(), func(key string) string {
		if key == EnvHub {
			return ""
		}
		return env(key)
	})
	if err == nil {
		t.Errorf("without a hub the variable is taken: %+v", door.TokenSource)
	}
	door, err = Flags{Hub: "https://hub.example.com", TokenEnv: "GOOD"}.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if door.Config.BearerToken != good || door.TokenSource != "the token in $GOOD" || door.Claims.Issuer != "https://gitlab.example.com" {
		t.Errorf("source %q, issuer %q, the right token: %v", door.TokenSource, door.Claims.Issuer, door.Config.BearerToken == good)
	}
	for name, want := range map[string]string{
		"BAD":   "the variable BAD holds no JWT: expected are three base64url parts with dots between",
		"UNSET": "the variable UNSET, where the job's OIDC token should be, is empty or unset",
	} {
		if _, err := (Flags{Hub: "https://hub.example.com", TokenEnv: name}).Open(t.Context(), env); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}
