package door

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// agent is a job on Buildkite whose agent is this shell script.
func agent(t *testing.T, script string) job {
	t.Helper()
	path := filepath.Join(t.TempDir(), "buildkite-agent")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return job{getenv: environment(map[string]string{EnvHub: "https://hub.example.com"}, onBuildkite), agent: path}
}

func TestTokenOfBuildkite(t *testing.T) {
	token := jwt(`{"iss":"https://agent.buildkite.com"}`)
	asked := filepath.Join(t.TempDir(), "asked")
	j := agent(t, `echo "$* $BUILDKITE_OIDC_TOKEN_CLAIMS" >`+asked+"\necho "+token)
	check := func(flags Flags, j job, want string) {
		t.Helper()
		door, err := flags.open(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if door.Config.BearerToken != token || door.TokenSource != "the token of Buildkite" || door.Claims.Issuer != "https://agent.buildkite.com" {
			t.Errorf("source %q, issuer %q, the right token: %v", door.TokenSource, door.Claims.Issuer, door.Config.BearerToken == token)
		}
		got, err := os.ReadFile(asked)
		if err != nil || string(got) != want {
			t.Errorf("asked %q, %v, want %q", got, err, want)
		}
	}
	check(Flags{}, j, "oidc request-token --audience cellcast.io/hub organization_id,pipeline_id\n")
	check(Flags{Audience: "https://hub.example.com"}, j, "oidc request-token --audience https://hub.example.com organization_id,pipeline_id\n")

	mine := j.getenv
	j.getenv = func(key string) string {
		if key == envBuildkiteClaims {
			return "organization_id,queue_id"
		}
		return mine(key)
	}
	check(Flags{}, j, "oidc request-token --audience cellcast.io/hub organization_id,queue_id\n")
}

func TestBuildkiteIssuesNone(t *testing.T) {
	const see = `; to see why: buildkite-agent oidc request-token --audience "cellcast.io/hub" >/dev/null`
	for name, test := range map[string]struct{ script, want string }{
		"the agent fails":          {"echo s3cret; echo s3cret >&2; exit 3", "Buildkite issued no token: buildkite-agent failed (exit status 3)" + see},
		"the agent prints nothing": {"", "what Buildkite issued is empty: the step that writes it got no token"},
		"the agent prints words":   {"echo s3cret", "what Buildkite issued holds no JWT: expected are three base64url parts with dots between"},
		"the agent prints on":      {"trap '' PIPE; i=0; while [ $i -lt 3000 ]; do echo s3cret-s3cret || exit 0; i=$((i+1)); done", "Buildkite issued no token: buildkite-agent printed more than a token"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Flags{}.open(t.Context(), agent(t, test.script))
			if err == nil || err.Error() != test.want {
				t.Fatalf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	t.Run("there is no agent", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		j := agent(t, "")
		j.agent = ""
		_, err := Flags{}.open(t.Context(), j)
		if want := "Buildkite issued no token: there is no buildkite-agent on the PATH"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
	t.Run("the user interrupts", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := filepath.Join(t.TempDir(), "began")
		go func() {
			defer cancel()
			for range 500 {
				if _, err := os.Stat(began); err == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		_, err := Flags{}.open(ctx, agent(t, "touch "+began+"; exec sleep 60"))
		if err == nil || !strings.HasPrefix(err.Error(), "Buildkite issued no token: buildkite-agent failed (") {
			t.Errorf("got %v", err)
		}
	})
}
