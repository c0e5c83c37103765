package door

import (
	"errors"
	"strings"
	"testing"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: one, user: me}}
- {name: two, context: {cluster: two, user: me}}
clusters:
- {name: one, cluster: {server: "https://one.example.com"}}
- {name: two, cluster: {server: "https://two.example.com"}}
users:
- {name: me, user: {token: mine}}
`

const certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

func TestWhichDoorIsOpened(t *testing.T) {
	token, other := file(t, jwt(`{"iss":"flag"}`)), file(t, jwt(`{"iss":"env"}`))
	ca, config := file(t, certificate), file(t, kubeconfig)
	for name, test := range map[string]struct {
		flags Flags
		env   map[string]string
		kind  Kind
		host  string
	}{
		"the kubeconfig's present context, by default": {
			env: map[string]string{"KUBECONFIG": config}, kind: Aggregated, host: "https://one.example.com"},
		"the context that a flag names": {
			flags: Flags{Kubeconfig: config, Context: "two"}, kind: Aggregated, host: "https://two.example.com"},
		"the hub that a flag names": {
			flags: Flags{Hub: "https://hub.example.com/", HubCA: ca, TokenFile: token},
			env:   map[string]string{"KUBECONFIG": config},
			kind:  Direct, host: "https://hub.example.com"},
		"the hub that the environment names": {
			env:  map[string]string{"KUBECONFIG": config, EnvHub: "https://env.example.com", EnvTokenFile: other, EnvHubCA: ca},
			kind: Direct, host: "https://env.example.com"},
		"a context that a flag names, in spite of the environment": {
			flags: Flags{Context: "two"},
			env:   map[string]string{"KUBECONFIG": config, EnvHub: "https://env.example.com", EnvTokenFile: other},
			kind:  Aggregated, host: "https://two.example.com"},
		"the hub of a flag with the token of the environment": {
			flags: Flags{Hub: "https://hub.example.com"},
			env:   map[string]string{EnvHub: "https://env.example.com", EnvTokenFile: other},
			kind:  Direct, host: "https://hub.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.env["KUBECONFIG"]) // read by client-go itself
			door, err := test.flags.Open(t.Context(), func(key string) string { return test.env[key] })
			if err != nil {
				t.Fatal(err)
			}
			if door.Kind != test.kind || door.Config.Host != test.host {
				t.Errorf("got %s %s, want %s %s", door.Kind, door.Config.Host, test.kind, test.host)
			}
			if door.Config.Insecure {
				t.Error("the hub's certificate isn't checked")
			}
			if test.kind == Aggregated {
				return
			}
			path, named := strings.CutPrefix(door.TokenSource, "the token in ")
			if want := first(test.flags.TokenFile, test.env[EnvTokenFile]); !named || path != want {
				t.Errorf("the token is called %q, want that in %s", door.TokenSource, want)
			}
			token, err := readToken(path)
			if err != nil {
				t.Fatal(err)
			}
			if door.Config.BearerToken != token.Reveal() {
				t.Errorf("the token isn't that of %s", path)
			}
		})
	}
}

func TestDoorsThatStayShut(t *testing.T) {
	token := file(t, jwt(`{}`))
	noPEM := file(t, "token: s3cret")
	for name, test := range map[string]struct {
		flags Flags
		usage bool
		want  string
	}{
		"both doors at once": {
			Flags{Hub: "https://hub.example.com", Context: "one"}, true,
			"--hub is a way to the hub without a kubeconfig: leave out --kubeconfig and --context, or --hub"},
		"a token without a hub": {
			Flags{TokenFile: token}, true, "--hub-ca, --token-file, --token-env and --audience go with --hub URL (or $CELLCAST_HUB)"},
		"a token beside a kubeconfig": {
			Flags{TokenFile: token, Context: "one"}, true, "--hub-ca, --token-file, --token-env and --audience go with --hub URL (or $CELLCAST_HUB)"},
		"a variable with a token beside a kubeconfig": {
			Flags{TokenEnv: "CI_TOKEN", Context: "one"}, true, "--hub-ca, --token-file, --token-env and --audience go with --hub URL (or $CELLCAST_HUB)"},
		"an audience without a hub": {
			Flags{Audience: "cellcast.io/hub"}, true, "--hub-ca, --token-file, --token-env and --audience go with --hub URL (or $CELLCAST_HUB)"},
		"a hub without a token": {
			Flags{Hub: "https://hub.example.com"}, true,
			"--hub needs the job's OIDC token, and there is none. Give it by --token-file FILE or $CELLCAST_TOKEN_FILE; " +
				"in the variable $CELLCAST_TOKEN, as with GitLab's id_tokens, or one that --token-env names; " +
				"on GitHub Actions give the job the permission id-token: write; " +
				"on Buildkite run in the job's own environment, with $BUILDKITE_AGENT_ACCESS_TOKEN"},
		"a hub in the clear": {
			Flags{Hub: "http://hub.example.com", TokenFile: token}, true,
			"--hub must be an https URL without user, query and fragment, such as https://cellcast.example.com"},
		"a hub with a password": {
			Flags{Hub: "https://me:s3cret@hub.example.com", TokenFile: token}, true,
			"--hub must be an https URL without user, query and fragment, such as https://cellcast.example.com"},
		"a CA file that isn't there": {
			Flags{Hub: "https://hub.example.com", TokenFile: token, HubCA: "no/ca.pem"}, false,
			"the CA file no/ca.pem doesn't exist. Where the hub's certificate is issued in the hub, fetch its CA with: " +
				"kubectl get apiservice v1alpha1.cellcast.io -o jsonpath='{.spec.caBundle}' | base64 -d > no/ca.pem"},
		"a CA file without a certificate": {
			Flags{Hub: "https://hub.example.com", TokenFile: token, HubCA: noPEM}, false,
			"the CA file " + noPEM + " holds no PEM certificate"},
		"no kubeconfig at all": {
			Flags{}, false, "no way to the hub: there is no kubeconfig. Name one with --kubeconfig, or in a CI job use --hub URL with the job's OIDC token"},
		"a kubeconfig that isn't there": {
			Flags{Kubeconfig: "no/config"}, false, "read the kubeconfig of the hub: stat no/config: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "/dev/null")
			_, err := test.flags.Open(t.Context(), func(string) string { return "" })
			if err == nil || err.Error() != test.want {
				t.Fatalf("got  %v\nwant %s", err, test.want)
			}
			var usage *UsageError
			if errors.As(err, &usage) != test.usage {
				t.Errorf("a wrong use: %v, want %v", !test.usage, test.usage)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error quotes a secret: %v", err)
			}
		})
	}
}
