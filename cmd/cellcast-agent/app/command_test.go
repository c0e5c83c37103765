package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunExitCodes(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	good := []string{"--cell=oslo", "--hub=https://hub.example.com", "--health-bind-address=0"}
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string // what they begin with
	}{
		"help is no error":              {[]string{"--help"}, 0, "cellcast-agent reads the nodes and pods", ""},
		"missing flags":                 {nil, 2, "", "--cell is missing: "},
		"an unknown flag":               {append(good, "--cells=x"), 2, "", "unknown flag: --cells\ncellcast-agent --help shows the flags.\n"},
		"a flag with a bad value":       {append(good, "--interval=soon"), 2, "", `invalid argument "soon" for "--interval"`},
		"an argument":                   {append(good, "oslo"), 2, "", `unknown command "oslo"`},
		"a kubeconfig that isn't there": {append(good, "--kubeconfig="+filepath.Join(t.TempDir(), "none")), 1, "", ""},
		"no cell to run in":             {good, 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := Run(t.Context(), test.args, &stdout, &stderr); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.HasPrefix(stdout.String(), test.stdout) {
				t.Errorf("stdout %q, want it to begin with %q", stdout.String(), test.stdout)
			}
			if !strings.HasPrefix(stderr.String(), test.stderr) {
				t.Errorf("stderr %q, want it to begin with %q", stderr.String(), test.stderr)
			}
		})
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	var stdout bytes.Buffer
	Run(t.Context(), []string{"--help"}, &stdout, &bytes.Buffer{})
	for _, want := range []string{"--cell ", "--hub ", "--hub-ca ", "--token-file ", "--interval ", "--kubeconfig ",
		"--namespace ", "--leader-elect ", "--health-bind-address ", "--revocable-namespaces ", "-v, --v "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("help lacks %q", want)
		}
	}
}

func TestConfigOfAKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
current-context: cell
clusters: [{name: cell, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: agent, user: {}}]
contexts: [{name: cell, context: {cluster: cell, user: agent}}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Cell, o.Hub, o.HubCA, o.Kubeconfig = "oslo", "https://hub.example.com", "/ca.crt", file
	got, err := o.Config()
	if err != nil {
		t.Fatal(err)
	}
	if got.Client == nil || got.Leases == nil || got.Identity == "" || got.Namespace != "cellcast-system" || got.HealthAddress != ":8081" {
		t.Errorf("by default it lacks a client, a lease or an address: %+v", got)
	}
	if got.Metadata != nil || got.RevocableNamespaces != nil {
		t.Errorf("by default it can end credentials: %+v", got)
	}
	if got.Cell != "oslo" || got.HubURL != "https://hub.example.com" || got.HubCAFile != "/ca.crt" || got.TokenFile != o.TokenFile || got.Interval != o.Interval {
		t.Errorf("it doesn't say what the flags say: %+v", got)
	}

	o.LeaderElect, o.HealthBindAddress = false, "0"
	if got, err = o.Config(); err != nil {
		t.Fatal(err)
	}
	if got.Leases != nil || got.HealthAddress != "" {
		t.Errorf("switched off, it has a lease or an address: %+v", got)
	}

	o.RevocableNamespaces = []string{"ci"}
	if got, err = o.Config(); err != nil {
		t.Fatal(err)
	}
	if got.Metadata == nil || len(got.RevocableNamespaces) != 1 || got.RevocableNamespaces[0] != "ci" {
		t.Errorf("told to end credentials, it can't: %+v", got)
	}
}
