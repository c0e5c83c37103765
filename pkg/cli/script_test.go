package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"cellcast.io/cellcast/pkg/cli"
)

var update = flag.Bool("update", false, "write the expected outputs in the scripts anew")

// TestMain makes this binary the client, under each of its names, where a
// script runs it.
func TestMain(m *testing.M) {
	client := func() {
		env, clock := cli.System(), newClock()
		env.Now, env.Sleep = clock.now, clock.sleep
		os.Exit(cli.Run(context.Background(), env))
	}
	testscript.Main(m, map[string]func(){
		"cellcast":                 client,
		"kubectl-cellcast":         client,
		"kubectl-create-placement": client,
	})
}

// The scripts run the client as a process, as a shell does, beside a fake hub.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			hub := newFakeHub(env.T().(testing.TB))
			env.Setenv("HUB", hub.URL)
			env.Setenv("CELLCAST_CACHE_DIR", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "hub.kubeconfig"))
			return errors.Join(
				write(env, "ca.pem", string(hub.ca())),
				write(env, "oidc.jwt", callerToken+"\n"),
				write(env, "hub.kubeconfig", fmt.Sprintf(hubKubeconfig, hub.URL)),
			)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// hubKubeconfig is a kubeconfig for a fake hub, beside its CA and the token.
const hubKubeconfig = `apiVersion: v1
kind: Config
current-context: hub
contexts: [{name: hub, context: {cluster: hub, user: me}}]
clusters: [{name: hub, cluster: {server: "%s", certificate-authority: ca.pem}}]
users: [{name: me, user: {tokenFile: oidc.jwt}}]
`

func write(env *testscript.Env, name, content string) error {
	return os.WriteFile(filepath.Join(env.WorkDir, name), []byte(content), 0o600)
}

// exits is a command of the scripts: exits CODE PROGRAM ARGS… runs a program
// and fails unless it exits with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s exits with %d, want %d", args[1], got, want)
	}
}
