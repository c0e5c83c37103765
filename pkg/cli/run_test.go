package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cellcast.io/cellcast/pkg/cli"
)

// now is the time for the client and for the fake hub.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clock is a clock that stands, but for the time that is slept.
type clock struct {
	mu    sync.Mutex
	at    time.Time
	slept []time.Duration
}

func newClock() *clock { return &clock{at: now} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) sleep(_ context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.slept = c.at.Add(d), append(c.slept, d)
	return nil
}

// caller is someone with a shell, at the direct door of a fake hub.
type caller struct {
	t     *testing.T
	hub   *fakeHub
	dir   string
	env   map[string]string
	token string
	// clock is that of the last run, and sleep is called where a run waits.
	clock *clock
	sleep func()
	// cache is the folder of decisions; empty where the user can't have one.
	cache string
	// ctx is what the next run ends with.
	ctx context.Context
}

func newCaller(t *testing.T) *caller {
	t.Helper()
	c := &caller{t: t, hub: newFakeHub(t), dir: t.TempDir(), ctx: t.Context()}
	c.token = c.file("oidc.jwt", callerToken)
	c.env = map[string]string{
		"CELLCAST_HUB":        c.hub.URL,
		"CELLCAST_HUB_CA":     c.file("ca.pem", string(c.hub.ca())),
		"CELLCAST_TOKEN_FILE": c.token,
	}
	c.cache = filepath.Join(t.TempDir(), "caches", "cellcast")
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
	c.clock = newClock()
	code := cli.Run(c.ctx, cli.Env{
		Args:   args,
		Out:    &out,
		Err:    &err,
		Getenv: func(key string) string { return c.env[key] },
		Now:    c.clock.now,
		Random: func() float64 { return 0 },
		Sleep: func(ctx context.Context, d time.Duration) error {
			if c.sleep != nil {
				c.sleep()
			}
			return c.clock.sleep(ctx, d)
		},
		UserCacheDir: func() (string, error) {
			if c.cache == "" {
				return "", errors.New("no home")
			}
			return filepath.Dir(c.cache), nil
		},
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
	return c.file("hub.kubeconfig", fmt.Sprintf(hubKubeconfig, c.hub.URL))
}
