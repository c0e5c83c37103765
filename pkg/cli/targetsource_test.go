package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellcast.io/cellcast/pkg/kubeconfig"
)

func TestWhatTheClosedFormCantCarryIsNamed(t *testing.T) {
	const carry = "What the hub takes of a kubeconfig can't carry this of context \"eu\":\n  "
	const makes = "Error: the kubeconfig can't be registered as it is: --create-credential makes a token for the hub on the target, with that login of yours\nSee cellcast target register --help\n"
	const names = "Error: the kubeconfig can't be registered as it is: --endpoint and --certificate-authority name the address and the CA for the hub, where those of the kubeconfig are for you alone\nSee cellcast target register --help\n"
	expired := "{token: " + jwt(`{"iss":"https://SECRET.example.com","exp":1}`) + "}"
	for name, test := range map[string]struct {
		cluster, user string
		flags         []string
		err           []string // parts of it, in their order; none where it's taken
	}{
		"a plugin":                       {"certificate-authority: target.pem", execUser, nil, []string{carry + "users[0].user.exec: exec names a program", makes}},
		"a file with the token":          {"certificate-authority: target.pem", "{tokenFile: SECRET}", nil, []string{carry + "users[0].user.tokenFile: ", makes}},
		"a client certificate":           {"certificate-authority: target.pem", "{client-certificate: SECRET, client-key: SECRET}", nil, []string{carry + "users[0].user.client-certificate: ", "users[0].user.client-key: ", makes}},
		"two credentials":                {"certificate-authority: target.pem", "{token: own.SECRET.token, client-certificate: SECRET, client-key: SECRET}", nil, []string{carry + "users[0].user.client-", makes}},
		"somebody else's rights":         {"certificate-authority: target.pem", "{token: own.SECRET.token, as: SECRET}", nil, []string{carry + "users[0].user.as: ", makes}},
		"no credential":                  {"certificate-authority: target.pem", "{}", nil, []string{carry + "users[0].user", makes}},
		"a token that has ended":         {"certificate-authority: target.pem", expired, nil, []string{"Error: the kubeconfig's token ended at 1970-01-01T00:00:01Z: log in again, or let --create-credential make one that lasts\n"}},
		"a proxy":                        {`certificate-authority: target.pem, proxy-url: "http://SECRET:1"`, staticUser, nil, []string{carry + "clusters[0].cluster.proxy-url: ", names}},
		"a proxy, for the user":          {`certificate-authority: target.pem, proxy-url: "http://SECRET:1"`, staticUser, []string{"--endpoint", "https://api.example.com"}, nil},
		"another name":                   {"certificate-authority: target.pem, tls-server-name: SECRET", staticUser, nil, []string{carry + "clusters[0].cluster.tls-server-name: ", names}},
		"no check of the server":         {"insecure-skip-tls-verify: true", staticUser, nil, []string{carry + "clusters[0].cluster.insecure-skip-tls-verify: ", names}},
		"no check, for the user":         {"insecure-skip-tls-verify: true", staticUser, []string{"--certificate-authority", "target.pem"}, nil},
		"no CA":                          {"disable-compression: true", staticUser, nil, []string{`Error: context "eu" names no CA, and the hub trusts no public one by itself: name the file with the CA of the target's API with --certificate-authority` + "\n"}},
		"a key beside the CA":            {"certificate-authority: key.pem", staticUser, nil, []string{"Error: the CA of the kubeconfig must hold PEM certificates and nothing else\n"}},
		"a plugin through a proxy":       {`certificate-authority: target.pem, proxy-url: "http://SECRET:1"`, execUser, nil, []string{"clusters[0].cluster.proxy-url: ", "users[0].user.exec: ", "Error: the kubeconfig can't be registered as it is: --create-credential makes", "; --endpoint and"}},
		"what registering takes care of": {"certificate-authority: target.pem, disable-compression: true, extensions: [{name: SECRET, extension: {a: SECRET}}]", staticUser, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			t.Chdir(o.dir)
			o.file("key.pem", "-----BEGIN PRIVATE KEY-----\nU0VDUkVU\n-----END PRIVATE KEY-----\n")
			file := o.file("target.kubeconfig", kubeconfigFor("eu", o.target.URL, "elsewhere", test.cluster, test.user))
			got := o.register(file, test.flags...)
			if test.err == nil {
				if got.code != 0 || o.hub.at(hubRow) == nil {
					t.Errorf("got %+v", got)
				}
				return
			}
			rest, inOrder := got.err, true
			for _, part := range test.err {
				var found bool
				_, rest, found = strings.Cut(rest, part)
				inOrder = inOrder && found
			}
			if !inOrder || got.code == 0 {
				t.Errorf("got %+v, want %q", got, test.err)
			}
			if len(o.hub.paths())+len(o.target.paths()) > 0 {
				t.Errorf("made: %v %v", o.hub.paths(), o.target.paths())
			}
		})
	}
}

func TestALoginThatTheHubCantUseMakesACredentialThatItCan(t *testing.T) {
	o := newOwner(t)
	plugin := o.file("login", "#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\""+ownToken+"\"}}'\n")
	if err := os.Chmod(plugin, 0o700); err != nil {
		t.Fatal(err)
	}
	got := o.register(o.kubeconfig("{exec: {apiVersion: client.authentication.k8s.io/v1, command: "+plugin+", interactiveMode: Never}}"), "--create-credential")
	if got.code != 0 || !strings.Contains(o.stored(), issuedToken) || strings.Contains(o.stored(), ownToken) {
		t.Errorf("got %+v", got)
	}
}

func TestTheContextIsTheOneThatIsNamed(t *testing.T) {
	o := newOwner(t)
	if got := o.register(o.kubeconfig(execUser), "--context", "other"); got.code != 0 || !strings.Contains(o.stored(), "another.SECRET.one") {
		t.Errorf("got %+v", got)
	}
	if got := o.register(o.kubeconfig(execUser), "--context", "nowhere"); got.code != 2 || !strings.Contains(got.err, `it has no context "nowhere"`) {
		t.Errorf("got %+v", got)
	}
}

func TestAFileThatIsNoKubeconfigIsNotQuoted(t *testing.T) {
	for name, content := range map[string]string{
		"no YAML":              "a: 'SECRET",
		"of another form":      "apiVersion: v1\nkind: Config\nusers: SECRET\n",
		"another object":       "apiVersion: v1\nkind: Secret\nstringData: {a: SECRET}\n",
		"a token for an alias": "apiVersion: v1\nkind: Config\nusers: [{name: me, user: {token: *SECRET}}]\n",
		"nothing":              "",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			if got := o.register(o.file("target.kubeconfig", content)); got.code != 2 || !strings.HasPrefix(got.err, "Error: the kubeconfig DIR/target.kubeconfig can't be used: ") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestADryRunPrintsManifestsAndCreatesNothing(t *testing.T) {
	o := newOwner(t)
	got := o.register(o.kubeconfig(staticUser), "--create-credential", "--dry-run")
	if got.code != 0 || got.err != "" || len(o.hub.paths())+len(o.target.paths())+len(o.hub.rehearsed) > 0 {
		t.Errorf("got %+v; made %v %v", got, o.hub.paths(), o.target.paths())
	}
	for _, want := range []string{
		"# For the target, as yourself (context \"eu\").", "kind: ServiceAccount\n", "type: kubernetes.io/service-account-token\n",
		"# For the hub. The Secret isn't printed, for the kubeconfig is in it", "kind: ClusterTarget\n", "\n  namespace: shop\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("it lacks %q:\n%s", want, got.out)
		}
	}
}

func TestAKubeconfigInVaultStaysThere(t *testing.T) {
	o := newOwner(t)
	file := filepath.Join(o.dir, "closed.kubeconfig")
	got := o.register(o.kubeconfig(staticUser), "--vault-path", "users/jo/eu", "--write-kubeconfig", file)
	diff(t, "the answer", answerOf{0, "", `Wrote DIR/closed.kubeconfig, readable by you alone. Put it into Vault, where MOUNT is the KV engine of the hub, and remove it:
  vault kv put -mount=MOUNT users/jo/eu kubeconfig=@DIR/closed.kubeconfig && rm DIR/closed.kubeconfig
Created ClusterTarget eu in namespace payments at the hub.
Next: kubectl cellcast probe eu -n payments --kubeconfig DIR/hub.kubeconfig
`}, got)
	diff(t, "at the hub", []string{hubRow}, o.hub.paths())
	diff(t, "the reference", object{"vaultRef": object{"path": "users/jo/eu", "key": "kubeconfig"}}, o.hub.at(hubRow)["spec"].(object)["credentialRef"].(object))
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if closed, err := kubeconfig.Parse(content); err != nil || closed.Token.Reveal() != ownToken {
		t.Errorf("the file isn't of the closed form: %v", err)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %o", info.Mode().Perm())
	}
	// A Secret in its place is another thing.
	if got := o.register(o.kubeconfig(staticUser)); got.code != 2 || !strings.Contains(got.err, `with its kubeconfig in Vault at "users/jo/eu"`) {
		t.Errorf("got %+v", got)
	}
}

func TestAnotherTargetOfTheNameIsLeftAsItIs(t *testing.T) {
	o := newOwner(t)
	o.register(o.kubeconfig(staticUser))
	o.hub.changed()
	got := o.run("target", "register", "eu", "-f", o.kubeconfig(staticUser), "--namespace", "other", "--hub-kubeconfig", filepath.Join(o.dir, "hub.kubeconfig"))
	if got.code != 2 || !strings.Contains(got.err, `target payments/eu is registered already, for namespace "shop" of its cluster: choose another name`) {
		t.Errorf("got %+v", got)
	}
	diff(t, "the changes", []string(nil), o.hub.changed())
}
