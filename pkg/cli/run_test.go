package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellcast.io/cellcast/pkg/cli"
)

// now is the time for the client and for the fake hub.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// caller is someone with a shell, at the direct door of a fake hub.
type caller struct {
	t     *testing.T
	hub   *fakeHub
	dir   string
	env   map[string]string
	token string
}

func newCaller(t *testing.T) *caller {
	t.Helper()
	c := &caller{t: t, hub: newFakeHub(t), dir: t.TempDir()}
	c.token = c.file("oidc.jwt", callerToken)
	c.env = map[string]string{
		"CELLCAST_HUB":        c.hub.URL,
		"CELLCAST_HUB_CA":     c.file("ca.pem", string(c.hub.ca())),
		"CELLCAST_TOKEN_FILE": c.token,
	}
	return c
}

// answerOf is what a run showed.
type answerOf struct {
	code     int
	out, err string
}

// run runs the client, and fails where it shows the caller's own token.
func (c *caller) run(args ...string) answerOf {
	c.t.Helper()
	var out, err bytes.Buffer
	code := cli.Run(c.t.Context(), cli.Env{
		Args:   args,
		Out:    &out,
		Err:    &err,
		Getenv: func(key string) string { return c.env[key] },
		Now:    func() time.Time { return now },
	})
	for _, part := range strings.Split(callerToken, ".") {
		if strings.Contains(out.String()+err.String(), part) {
			c.t.Errorf("%v shows the caller's token:\n%s%s", args, out.String(), err.String())
		}
	}
	return answerOf{code: code, out: out.String(), err: err.String()}
}

func (c *caller) file(name, content string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// kubeconfig is one with which the caller enters by the other door.
func (c *caller) kubeconfig() string {
	c.t.Helper()
	return c.file("hub.kubeconfig", `apiVersion: v1
kind: Config
current-context: hub
contexts: [{name: hub, context: {cluster: hub, user: me}}]
clusters: [{name: hub, cluster: {server: "`+c.hub.URL+`", certificate-authority: ca.pem}}]
users: [{name: me, user: {tokenFile: oidc.jwt}}]
`)
}
