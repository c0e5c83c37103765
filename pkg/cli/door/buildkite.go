package door

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// The variables of a Buildkite job: Buildkite's "Environment variables" and
// "buildkite-agent oidc".
const (
	envBuildkite       = "BUILDKITE"
	envBuildkiteToken  = "BUILDKITE_AGENT_ACCESS_TOKEN" //nolint:gosec // the name of a variable
	envBuildkiteClaims = "BUILDKITE_OIDC_TOKEN_CLAIMS"  //nolint:gosec // the name of a variable
)

// buildkiteClaims are the ids, which Buildkite puts into a token on request
// alone. A policy by slug would go to whoever takes the slug next.
const buildkiteClaims = "organization_id,pipeline_id"

// fromBuildkite runs Buildkite's own program, as its documentation has it. The
// token comes on the program's output; none is in its arguments.
func fromBuildkite(j job, audience string) source {
	return fetched("Buildkite", func(ctx context.Context) (string, error) {
		program := first(j.agent, "buildkite-agent")
		cmd := exec.CommandContext(ctx, program, "oidc", "request-token", "--audience", audience)
		// An agent that is too old for the variable leaves it alone.
		cmd.Env = append(os.Environ(), envBuildkiteClaims+"="+first(j.getenv(envBuildkiteClaims), buildkiteClaims))
		// A child of the agent that keeps the output open doesn't keep us.
		cmd.WaitDelay = time.Second
		var printed capped
		cmd.Stdout = &printed
		err := cmd.Run()
		switch {
		case errors.Is(err, errTooLong):
			return "", errors.New("buildkite-agent printed more than a token")
		case errors.Is(err, exec.ErrNotFound):
			return "", errors.New("there is no buildkite-agent on the PATH")
		case err != nil:
			// Its standard error isn't repeated: with debugging on, tokens are in it.
			return "", fmt.Errorf("buildkite-agent failed (%w); to see why: buildkite-agent oidc request-token --audience %q >/dev/null", err, audience)
		default:
			return printed.String(), nil
		}
	})
}

var errTooLong = errors.New("too long")

// capped holds as much as a token may have, and takes no more.
type capped struct{ strings.Builder }

// Write takes all of it or nothing.
func (c *capped) Write(p []byte) (int, error) {
	if c.Len()+len(p) > maxToken {
		return 0, errTooLong
	}
	return c.Builder.Write(p)
}
