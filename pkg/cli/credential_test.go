package cli_test

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli"
	"cellcast.io/cellcast/pkg/refusal"
)

const (
	execInfo = `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}}`
	// cellInfo is what client-go says with provideClusterInfo.
	cellInfo = `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false,` +
		`"cluster":{"server":"https://eu-1.example.com","certificate-authority-data":"UEVN"}}}`
)

func TestCredentialGivesATokenThatIsAskedForAgainInTime(t *testing.T) {
	for name, test := range map[string]struct {
		life, revocable time.Duration
		want            string
	}{
		"a minute before the end of a long life":          {30 * time.Minute, 0, "2026-01-02T03:33:05Z"},
		"a tenth of a short life before its end":          {5 * time.Minute, 0, "2026-01-02T03:08:35Z"},
		"by when the agent ends it, where that is sooner": {10 * time.Minute, 5 * time.Minute, "2026-01-02T03:08:35Z"},
		"by the cell's end, where that is sooner":         {5 * time.Minute, 10 * time.Minute, "2026-01-02T03:08:35Z"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.hub.with(func(h *credentialhub) { h.life, h.revocable = test.life, test.revocable })
			j.env = append(j.env, "KUBERNETES_EXEC_INFO="+execInfo)
			got := j.run("credential", "--cell", "eu-1", "--workload", "payments/api")
			want := answerOf{0, `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false},` +
				`"status":{"expirationTimestamp":"` + test.want + `","token":"minted.SECRET.1"}}` + "\n", ""}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCredentialAsksWhatTheFlagsSay(t *testing.T) {
	j := newJob(t)
	j.env = append(j.env, "KUBERNETES_EXEC_INFO="+execInfo)
	if got := j.run("credential", "--cell", "eu-1", "--workload", "payments/api", "--ttl", "15m", "--dark"); got.code != 0 {
		t.Errorf("got %+v", got)
	}
	want := []cellcastv1alpha1.CellTokenSpec{{Workload: "payments/api", TTL: "15m0s", Dark: true}}
	var asked []cellcastv1alpha1.CellTokenSpec
	j.hub.with(func(h *credentialhub) { asked = h.tokens })
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("the questions (-want +got):\n%s", diff)
	}
}

func TestCredentialGivesNoTokenToAnotherServer(t *testing.T) {
	const not, none, old = `Error: the token for cell "eu-1" is not given out, and the credential was revoked: the kubeconfig doesn't lead there; `,
		`Error: no token for cell "eu-1" is asked for: the kubeconfig doesn't lead there; `,
		". If it's only old, print it anew with cellcast credential kubeconfig\n"
	for name, test := range map[string]struct {
		from, to string
		minted   int
		revoked  []string
		err      string
	}{
		"but to the cell's":               {"", "", 1, nil, ""},
		"but to the cell's, written so":   {"https://eu-1.example.com", "https://EU-1.example.com:443/", 1, nil, ""},
		"of another name":                 {"eu-1.example", "eu-1.acme", 1, credentialhubRevoked, not + `its server is "https://eu-1.acme.com", and that of the cell is "https://eu-1.example.com"` + old},
		"on another port":                 {"example.com", "example.com:6443", 1, credentialhubRevoked, not + `its server is "https://eu-1.example.com:6443", and that of the cell is "https://eu-1.example.com"` + old},
		"under another path":              {"example.com", "example.com/x", 1, credentialhubRevoked, not + `its server is "https://eu-1.example.com/x", and that of the cell is "https://eu-1.example.com"` + old},
		"that is checked by another CA":   {"UEVN", "T1RIRVI=", 1, credentialhubRevoked, not + "its certificate-authority-data isn't what the hub has for the cell" + old},
		"in the clear":                    {"https:", "http:", 0, nil, none + `its server is "http://eu-1.example.com", which is no https URL of a cell` + old},
		"that nobody checks":              {`"server"`, `"insecure-skip-tls-verify":true,"server"`, 0, nil, none + "it has insecure-skip-tls-verify, so that any server could take the token" + old},
		"that is checked by another name": {`"server"`, `"tls-server-name":"acme.com","server"`, 0, nil, none + "it has a tls-server-name, and the cell is known by its endpoint's" + old},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			j.env = append(j.env, "KUBERNETES_EXEC_INFO="+strings.Replace(cellInfo, test.from, test.to, 1))
			got := j.run("credential", "--cell", "eu-1", "--workload", "payments/api")
			if (got.code == 0) != (test.err == "") || got.err != test.err || strings.Contains(got.out, "SECRET") != (test.err == "") {
				t.Errorf("got %+v, want %s", got, test.err)
			}
			if minted, _ := j.hub.counts(); minted != test.minted {
				t.Errorf("minted %d times, want %d", minted, test.minted)
			}
			j.clean(test.revoked)
		})
	}
}

// What can't be revoked lives on, and the user hears until when.
func TestCredentialSaysUntilWhenATokenIsGoodThatIsNotGivenOut(t *testing.T) {
	j := newJob(t)
	j.hub.with(func(h *credentialhub) { h.revocable = 0 })
	j.env = append(j.env, "KUBERNETES_EXEC_INFO="+strings.Replace(cellInfo, "UEVN", "T1RIRVI=", 1))
	got := j.run("credential", "--cell", "eu-1", "--workload", "payments/api")
	want := answerOf{1, "", `Error: the token for cell "eu-1" is not given out, and the credential can't be revoked, and is good until 2026-01-02T03:14:05Z: ` +
		"the kubeconfig doesn't lead there; its certificate-authority-data isn't what the hub has for the cell. If it's only old, print it anew with cellcast credential kubeconfig\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	j.clean(nil)
}

func TestCredentialRefuses(t *testing.T) {
	ended := func(h *credentialhub) { h.life = 0 }
	for name, test := range map[string]struct {
		info   string
		change func(*credentialhub)
		code   int
		err    string
	}{
		"whoever isn't client-go": {"", nil, 2,
			"Error: this is for kubectl and client-go to run, which set KUBERNETES_EXEC_INFO: print a kubeconfig for them with credential kubeconfig\nSee cellcast credential --help\n"},
		"what isn't JSON": {"{", nil, 1, "Error: KUBERNETES_EXEC_INFO holds no ExecCredential\n"},
		"another version": {strings.Replace(execInfo, "io/v1", "io/v1beta1", 1), nil, 1,
			`Error: the kubeconfig asks for ExecCredential of "client.authentication.k8s.io/v1beta1", and this plugin answers ExecCredential of client.authentication.k8s.io/v1 alone: correct apiVersion under users[].user.exec` + "\n"},
		"another kind": {strings.Replace(execInfo, "ExecCredential", "Other", 1), nil, 1,
			`Error: the kubeconfig asks for Other of "client.authentication.k8s.io/v1", and this plugin answers ExecCredential of client.authentication.k8s.io/v1 alone: correct apiVersion under users[].user.exec` + "\n"},
		"a credential that has ended": {execInfo, ended, 1,
			`Error: the hub's credential for cell "eu-1" ended at 2026-01-02T03:04:05Z already: compare the clocks of this machine and of the cell` + "\n"},
		"what the hub refuses": {execInfo, func(h *credentialhub) { h.refuses["cells/eu-1/token"] = refusal.CellChoiceNotPermitted }, 3,
			"Error: CellChoiceNotPermitted: the fake says so\n" + refusal.CellChoiceNotPermitted.Meaning().Next + "\nRequest id: " + requestID + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			if test.change != nil {
				j.hub.with(test.change)
			}
			j.env = append(j.env, "KUBERNETES_EXEC_INFO="+test.info)
			got := j.run("credential", "--cell", "eu-1", "--workload", "payments/api")
			if diff := cmp.Diff(answerOf{test.code, "", test.err}, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The cell's kubeconfig is the one in $KUBECONFIG here: to follow it would start
// the plugin without end.
func TestCredentialDoesNotAskItself(t *testing.T) {
	j := newJob(t)
	j.hub.with(func(h *credentialhub) { h.cell.CABundle = (&fakeHub{Server: h.Server}).ca() })
	own := j.run("credential", "kubeconfig", "--cell", "eu-1", "--workload", "payments/api")
	path := j.file("cell.kubeconfig", own.out)
	j.env = append(slices.DeleteFunc(j.env, func(v string) bool { return strings.HasPrefix(v, "CELLCAST_") }),
		"KUBERNETES_EXEC_INFO="+execInfo, "KUBECONFIG="+path)
	for name, test := range map[string]struct {
		args []string
		want answerOf
	}{
		"by the environment": {nil, answerOf{2, "", "Error: which hub? Name the way with --hub URL or --kubeconfig FILE: $KUBECONFIG may be the cell's here, and isn't followed\nSee cellcast credential --help\n"}},
		"by a context":       {[]string{"--context", "eu-1"}, answerOf{2, "", "Error: which hub? Name the way with --hub URL or --kubeconfig FILE: $KUBECONFIG may be the cell's here, and isn't followed\nSee cellcast credential --help\n"}},
		"by a flag":          {[]string{"--kubeconfig", path}, answerOf{1, "", "Error: the kubeconfig that shall lead to the hub is one of a cell: it asks cellcast itself for its token\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := j.run(append([]string{"credential", "--cell", "eu-1", "--workload", "payments/api"}, test.args...)...)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCredentialKubeconfigLeadsToTheHub(t *testing.T) {
	for name, test := range map[string]struct {
		// env takes the place of the direct door's variables.
		env  []string
		args []string
		want []string
	}{
		"by its own port, as the environment says": {nil, nil,
			[]string{"--hub=HUB", "--hub-ca=DIR/ca.pem", "--token-file=DIR/oidc.jwt"}},
		"by its own port, with the token in another variable": {[]string{"CELLCAST_HUB=HUB", "CELLCAST_HUB_CA=ca.pem", "CELLCAST_TOKEN_FILE=DIR/none", "ID_TOKEN=JWT"},
			[]string{"--token-env", "ID_TOKEN"},
			[]string{"--hub=HUB", "--hub-ca=DIR/ca.pem", "--token-env=ID_TOKEN"}},
		"by its own port, as the flags say": {[]string{"KUBECONFIG=none"},
			[]string{"--hub", "HUB", "--hub-ca", "ca.pem", "--token-file", "oidc.jwt", "--ttl", "15m", "--dark", "--timeout", "10s"},
			[]string{"--ttl=15m0s", "--dark", "--timeout=10s", "--hub=HUB", "--hub-ca=DIR/ca.pem", "--token-file=DIR/oidc.jwt"}},
		"by the one kubeconfig of the environment, in its context": {[]string{"KUBECONFIG=hub.kubeconfig:none"}, nil,
			[]string{"--context=hub", "--kubeconfig=DIR/hub.kubeconfig"}},
		"by a kubeconfig and a context": {[]string{"KUBECONFIG=none"}, []string{"--kubeconfig", "hub.kubeconfig", "--context", "hub"},
			[]string{"--context=hub", "--kubeconfig=DIR/hub.kubeconfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			fill := strings.NewReplacer("HUB", j.hub.URL, "DIR", j.dir, "JWT", callerToken).Replace
			j.file("hub.kubeconfig", strings.Replace(hubKubeconfig, "%s", j.hub.URL, 1))
			if test.env != nil {
				j.env = slices.DeleteFunc(j.env, func(v string) bool { return strings.HasPrefix(v, "CELLCAST_") })
			}
			for _, v := range test.env {
				name, value, _ := strings.Cut(v, "=")
				j.env = append(j.env, name+"="+fill(value))
			}
			args := []string{"credential", "kubeconfig", "--cell", "eu-1", "--workload", "payments/api", "-n", "payments"}
			for _, arg := range test.args {
				args = append(args, strings.ReplaceAll(arg, "HUB", j.hub.URL))
			}
			got := j.run(args...)
			if got.code != 0 {
				t.Fatalf("got %+v", got)
			}
			config, err := clientcmd.Load([]byte(got.out))
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"credential", "--cell=eu-1", "--workload=payments/api"}
			for _, arg := range test.want {
				want = append(want, fill(arg))
			}
			user := config.AuthInfos["cellcast/eu-1"]
			if diff := cmp.Diff(want, user.Exec.Args); diff != "" {
				t.Errorf("the plugin's arguments (-want +got):\n%s", diff)
			}
			if len(user.Exec.Env) > 0 || user.Token != "" || config.Contexts["eu-1"].Namespace != "payments" {
				t.Errorf("got\n%s", got.out)
			}
			if minted, _ := j.hub.counts(); minted != 0 {
				t.Errorf("minted %d times", minted)
			}
		})
	}
}

func TestCredentialKubeconfigRefuses(t *testing.T) {
	const which = "Error: which hub? Name the way with --hub URL or --kubeconfig FILE: the environment names 2 kubeconfigs\n"
	for name, test := range map[string]struct {
		kubeconfig string
		args       []string
		err        string
	}{
		"two ways":            {"one.kubeconfig:two.kubeconfig", []string{"--cell", "eu-1", "--workload", "x"}, which},
		"no way":              {"none", []string{"--cell", "eu-1", "--workload", "x"}, strings.Replace(which, "2", "0", 1)},
		"no cell":             {"one.kubeconfig", []string{"--workload", "x"}, "Error: which cell? Name it with --cell\n"},
		"no workload":         {"one.kubeconfig", []string{"--cell", "eu-1"}, "Error: which workload? Name it with --workload, such as payments/api\n"},
		"a life below zero":   {"one.kubeconfig", []string{"--cell", "eu-1", "--workload", "x", "--ttl", "-1m"}, "Error: --ttl must be above zero\n"},
		"no time for the hub": {"one.kubeconfig", []string{"--cell", "eu-1", "--workload", "x", "--timeout", "0s"}, "Error: --timeout must be above zero\n"},
		"a namespace's name":  {"one.kubeconfig", []string{"--cell", "eu-1", "--workload", "x", "-n", "X"}, "Error: --namespace must be the name of a namespace\n"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t)
			for _, file := range []string{"one.kubeconfig", "two.kubeconfig"} {
				j.file(file, strings.Replace(hubKubeconfig, "%s", j.hub.URL, 1))
			}
			j.env = append(slices.DeleteFunc(j.env, func(v string) bool { return strings.HasPrefix(v, "CELLCAST_") }), "KUBECONFIG="+test.kubeconfig)
			got := j.run(append([]string{"credential", "kubeconfig"}, test.args...)...)
			if diff := cmp.Diff(answerOf{2, "", test.err + "See cellcast credential kubeconfig --help\n"}, got, cmp.AllowUnexported(answerOf{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// pluginProcess makes this test binary the client, in the world as it is, where
// client-go starts it as a plugin.
var pluginProcess = flag.Bool("cellcast-plugin", false, "be the client, with the arguments that follow")

func TestPluginProcess(*testing.T) {
	if *pluginProcess {
		env := cli.System()
		env.Args = append([]string{"cellcast"}, flag.Args()...)
		os.Exit(cli.Run(context.Background(), env))
	}
}

// A program of client-go's keeps one token while it lives, and gets a new one
// before it ends, with nothing in its kubeconfig.
func TestClientGoAsksAgainBeforeATokenEnds(t *testing.T) {
	j := newJob(t)
	cell := &cellAPI{ends: map[string]time.Time{}}
	server := httptest.NewTLSServer(cell)
	defer server.Close()
	j.hub.with(func(h *credentialhub) {
		h.now, h.life, h.revocable = time.Now, 5*time.Second, 0
		h.cell.Endpoint, h.cell.CABundle = server.URL, (&fakeHub{Server: server}).ca()
		h.minting = cell.accept
	})

	client := j.clientGo()
	eventually(t, func() bool {
		if _, err := client.Discovery().ServerVersion(); err != nil {
			t.Fatal(err)
		}
		return len(cell.seen()) == 2
	})
	if diff := cmp.Diff([]string{"Bearer minted.SECRET.1", "Bearer minted.SECRET.2"}, cell.seen()); diff != "" {
		t.Errorf("the cell saw (-want +got):\n%s", diff)
	}
}

// A kubeconfig whose server was changed gets no token out of the plugin.
func TestClientGoSendsNothingToAnotherServer(t *testing.T) {
	j := newJob(t)
	cell := &cellAPI{}
	server := httptest.NewTLSServer(cell)
	defer server.Close()
	j.hub.with(func(h *credentialhub) {
		h.now, h.cell.Endpoint, h.cell.CABundle = time.Now, server.URL, (&fakeHub{Server: server}).ca()
	})
	client := j.clientGo()
	j.hub.with(func(h *credentialhub) { h.cell.Endpoint = "https://eu-1.example.com" })
	if _, err := client.Discovery().ServerVersion(); err == nil || len(cell.seen()) != 0 {
		t.Errorf("got %v; the server saw %v", err, cell.seen())
	}
}

// clientGo is a client with the kubeconfig that is printed for it, whose plugin
// is this test binary.
func (j *job) clientGo() kubernetes.Interface {
	j.t.Helper()
	printed := j.run("credential", "kubeconfig", "--cell", "eu-1", "--workload", "payments/api")
	if printed.code != 0 || strings.Contains(printed.out, "SECRET") {
		j.t.Fatalf("got %+v", printed)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(printed.out))
	if err != nil {
		j.t.Fatal(err)
	}
	config.ExecProvider.Command = os.Args[0]
	config.ExecProvider.Args = append([]string{"-test.run=^TestPluginProcess$", "-cellcast-plugin", "--"}, config.ExecProvider.Args...)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		j.t.Fatal(err)
	}
	return client
}

// cellAPI is a cell's API, which refuses a token that has ended.
type cellAPI struct {
	mu     sync.Mutex
	ends   map[string]time.Time
	tokens []string
}

func (c *cellAPI) accept(token string, ends time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends["Bearer "+token] = ends
}

// seen are the tokens that came, each once.
func (c *cellAPI) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tokens)
}

func (c *cellAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	token := r.Header.Get("Authorization")
	if !slices.Contains(c.tokens, token) {
		c.tokens = append(c.tokens, token)
	}
	if !time.Now().Before(c.ends[token]) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"gitVersion": "v1.37.2"})
}
