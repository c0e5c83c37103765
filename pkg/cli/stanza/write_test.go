package stanza_test

import (
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cellcast.io/cellcast/pkg/cli/stanza"
	"cellcast.io/cellcast/test/issuer"
)

func TestTheWholeFile(t *testing.T) {
	got, err := stanza.Write("kubernetes", stanza.Options{
		Issuer: "https://kubernetes.default.svc.cluster.local", DiscoveryURL: "https://build.example.com/.well-known/openid-configuration", Audience: "cellcast.io/hub"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `# By this file a hub trusts the ServiceAccounts of a cluster: it's given by
# --pipeline-authentication-config. Where the hub has one already, add the entry
# under jwt to it; a changed file is read anew. Policies see each claim by the
# name after claims.cellcast.io/, and iss and sub besides.
#
# Its jobs show a projected token of this audience. Pin kubernetes.io/serviceaccount/uid
# in policies where an account that is deleted and made anew must not inherit; sub has
# its name. Names in system: are the hub's own, so system: is cut off the username.
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
  - issuer:
      url: "https://kubernetes.default.svc.cluster.local"
      discoveryURL: "https://build.example.com/.well-known/openid-configuration"
      audiences:
        - "cellcast.io/hub"
    claimMappings:
      username:
        expression: 'claims.sub.startsWith("system:") ? claims.sub.substring(7) : claims.sub'
      extra:
        - key: claims.cellcast.io/kubernetes.io/namespace
          valueExpression: 'claims[?"kubernetes.io"].?namespace.orValue("")'
        - key: claims.cellcast.io/kubernetes.io/serviceaccount/name
          valueExpression: 'claims[?"kubernetes.io"].?serviceaccount.?name.orValue("")'
        - key: claims.cellcast.io/kubernetes.io/serviceaccount/uid
          valueExpression: 'claims[?"kubernetes.io"].?serviceaccount.?uid.orValue("")'
        - key: claims.cellcast.io/kubernetes.io/pod/name
          valueExpression: 'claims[?"kubernetes.io"].?pod.?name.orValue("")'
        - key: claims.cellcast.io/kubernetes.io/pod/uid
          valueExpression: 'claims[?"kubernetes.io"].?pod.?uid.orValue("")'
        - key: claims.cellcast.io/kubernetes.io/node/name
          valueExpression: 'claims[?"kubernetes.io"].?node.?name.orValue("")'
        - key: claims.cellcast.io/kubernetes.io/node/uid
          valueExpression: 'claims[?"kubernetes.io"].?node.?uid.orValue("")'
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheIssuerThatADocumentationNamesNeedsNoFlag(t *testing.T) {
	for name, want := range map[string]string{
		"github":    "https://token.actions.githubusercontent.com",
		"gitlab":    "https://gitlab.com",
		"buildkite": "https://agent.buildkite.com",
	} {
		got, err := stanza.Write(name, stanza.Options{Audience: audience})
		if err != nil || !strings.Contains(string(got), "      url: \""+want+"\"\n") {
			t.Errorf("%s: no issuer %s: %v\n%s", name, want, err, got)
		}
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	i, err := issuer.Start(issuer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	i.Close()
	key := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("s3cret")})
	const (
		url       = "--issuer must be an https URL without user, query and fragment: the iss of the tokens, to the letter"
		discovery = "--discovery-url must be an https URL without user, query and fragment"
		word      = "--audience must be a word: what the job's tokens are asked for"
	)
	for name, test := range map[string]struct {
		platform string
		options  stanza.Options
		want     string
	}{
		"a platform that isn't known": {"jenkins", stanza.Options{}, `no CI platform is known as "jenkins"; there are buildkite, circleci, generic, github, gitlab, kubernetes`},
		"CircleCI of no organization": {"circleci", stanza.Options{Audience: audience}, "circleci has no issuer of its own: give --issuer, https://oidc.circleci.com/org/ORGANIZATION_ID"},
		"a cluster without a name": {"kubernetes", stanza.Options{Audience: audience},
			"kubernetes has no issuer of its own: give --issuer, the cluster's first --service-account-issuer: kubectl get --raw /.well-known/openid-configuration"},
		"an unknown issuer":              {"generic", stanza.Options{Audience: audience}, "generic has no issuer of its own: give --issuer, the iss of its tokens"},
		"an issuer in the clear":         {"gitlab", stanza.Options{Audience: audience, Issuer: "http://gitlab.example.com"}, url},
		"an issuer with a password":      {"gitlab", stanza.Options{Audience: audience, Issuer: "https://me:s3cret@gitlab.example.com"}, url},
		"an issuer with a fragment":      {"gitlab", stanza.Options{Audience: audience, Issuer: "https://gitlab.example.com#"}, url},
		"an issuer with a query":         {"gitlab", stanza.Options{Audience: audience, Issuer: "https://gitlab.example.com?a"}, url},
		"an issuer of two lines":         {"gitlab", stanza.Options{Audience: audience, Issuer: "https://gitlab.example.com/\nanonymous:"}, url},
		"a discovery URL in the clear":   {"gitlab", stanza.Options{Audience: audience, DiscoveryURL: "http://gitlab.example.com/x"}, discovery},
		"a discovery URL for the issuer": {"gitlab", stanza.Options{Audience: audience, DiscoveryURL: "https://gitlab.com"}, "--discovery-url is the whole URL of the discovery document, so it differs from the issuer; leave it out where the document is at ISSUER/.well-known/openid-configuration"},
		"no audience":                    {"github", stanza.Options{}, word},
		"an audience of two words":       {"github", stanza.Options{Audience: "a b"}, word},
		"an audience with a bell":        {"github", stanza.Options{Audience: "a\a"}, word},
		"a CA with its private key":      {"github", stanza.Options{Audience: audience, CA: append(i.CA(), key...)}, "the file of --ca must hold PEM certificates and nothing else"},
		"a CA that is a word":            {"github", stanza.Options{Audience: audience, CA: []byte("s3cret")}, "the file of --ca holds no PEM certificate"},
		"a CA that is junk":              {"github", stanza.Options{Audience: audience, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("s3cret")})}, "the file of --ca holds a PEM block that is no X.509 certificate"},
		"every CA of the world":          {"github", stanza.Options{Audience: audience, CA: []byte(strings.Repeat(string(i.CA()), 100))}, "the file of --ca is longer than 48 KiB: give the issuer's own CA alone"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := stanza.Write(test.platform, test.options)
			if err == nil || err.Error() != test.want || got != nil {
				t.Errorf("got  %v\nwant %s\n%s", err, test.want, got)
			}
		})
	}
}

// What stands in the CA file beside the certificate gets nowhere.
func TestTheCAIsWrittenAnew(t *testing.T) {
	i, err := issuer.Start(issuer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	i.Close()
	got, err := stanza.Write("gitlab", stanza.Options{Issuer: "https://gitlab.example.com", Audience: audience, CA: append([]byte("password: s3cret\n"), i.CA()...)})
	if err != nil {
		t.Fatal(err)
	}
	indented := "      certificateAuthority: |\n        " + strings.ReplaceAll(strings.TrimSpace(string(i.CA())), "\n", "\n        ") + "\n    # Who"
	if !strings.Contains(string(got), indented) || strings.Contains(string(got), "s3cret") {
		t.Errorf("got\n%s", got)
	}
}
