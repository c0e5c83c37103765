package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"cellcast.io/cellcast/pkg/kubeconfig/address"
	"cellcast.io/cellcast/pkg/secret"
)

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseReads(t *testing.T) {
	type want struct {
		server, host string
		port         uint16
		token        string
	}
	const canary = "canary-token"
	plain := want{"https://api.canary.example:6443", "api.canary.example", 6443, canary}
	for name, want := range map[string]want{
		"good.plain.yaml":           plain,
		"good.quoted.yaml":          plain,
		"good.json-line.json":       plain,
		"good.json-tabs.json":       plain,
		"good.escaped.yaml":         plain,
		"good.upper-case-host.yaml": plain,
		"good.path.yaml":            {"https://rancher.canary.example/k8s/clusters/c-m-abc123", "rancher.canary.example", 443, canary},
		"good.path-slash.yaml":      {"https://rancher.canary.example/k8s/clusters/c-m-abc123", "rancher.canary.example", 443, canary},
		"good.slash.yaml":           {"https://api.canary.example", "api.canary.example", 443, canary},
		"good.port-443.yaml":        {"https://api.canary.example", "api.canary.example", 443, canary},
		"good.ipv4.yaml":            {"https://10.1.2.3:6443", "10.1.2.3", 6443, canary},
		"good.ipv6.yaml":            {"https://[2001:db8::1]:6443", "2001:db8::1", 6443, canary},
		"good.token-rancher.yaml":   {plain.server, plain.host, plain.port, `kubeconfig-u-canary:x7"\y`},
		"good.token-numeric.yaml":   {plain.server, plain.host, plain.port, "12345678"},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := Parse(testdata(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := values(k); got != [4]string{want.server, want.host, fmt.Sprint(want.port), want.token} {
				t.Errorf("got %q, want %v", got, want)
			}
			if !bytes.HasPrefix(k.CAData, beginPEM) {
				t.Errorf("the CA data is %q", k.CAData)
			}
		})
	}
}

func values(k Kubeconfig) [4]string {
	return [4]string{k.Server, k.Host, fmt.Sprint(k.Port), k.Token.Reveal()}
}

// The whole sentences, for somebody reads them at night.
func TestErrorsSayWhereWhatAndWhatToDo(t *testing.T) {
	for name, want := range map[string]string{
		"Exec.12.of-eks.yaml":                      "line 12, users[0].user.exec: exec names a program that gets the token; put a ServiceAccount's long-lived token into users[0].user.token: cellcast target register makes one",
		"OneUser.13.two.yaml":                      "line 13, users[1]: there must be exactly one user; kubectl config view --minify --flatten --raw prints the current context's part alone",
		"Omitted.8.ca.yaml":                        "line 8, clusters[0].cluster.certificate-authority-data: the value was left out when the file was printed; kubectl config view --raw leaves nothing out",
		"UnknownField.13.token-as-name.yaml":       "line 13, users[0].user: there is a field that no kubeconfig has; case counts; remove the field",
		"MissingField.10.user-name.yaml":           "line 10, users[0].name: a field is missing; add it",
		"TooLarge.0.comment-of-64-kib.yaml":        "the file is over 64 KiB; kubectl config view --minify --flatten --raw prints the current context's part alone",
		"Directive.1.yaml-version.yaml":            "line 1: a line begins with %; remove the line",
		"ServerHost.7.octal-ipv4.yaml":             "line 7, clusters[0].cluster.server: the server's host isn't an IPv4 address of four decimal numbers; write a full domain name of letters, digits, - and . (an international one as xn--), or an IP address in its usual form",
		"AddressDenied.7.nat64-metadata.yaml":      "line 7, clusters[0].cluster.server: the hub doesn't connect to this address; use the address that other machines reach the API server by",
		"ClientCertificate.12.data.yaml":           "line 12, users[0].user.client-certificate-data: a client certificate or key is a second credential; put a ServiceAccount's long-lived token into users[0].user.token: cellcast target register makes one; remove client-certificate, client-key and their -data forms",
		"DuplicateField.13.escaped.yaml":           "line 13, users[0].user.token: the field stands here twice; keep one of the two",
		"CAData.8.private-key.yaml":                "line 8, clusters[0].cluster.certificate-authority-data: a PEM block of the CA data isn't a plain certificate; put 1 to 32 certificates in PEM, at least one of a CA, in base64 on one line",
		"CAData.8.rsa-8193-bits.yaml":              "line 8, clusters[0].cluster.certificate-authority-data: a certificate of the CA data has an RSA key of more than 8192 bits; put 1 to 32 certificates in PEM, at least one of a CA, in base64 on one line",
		"NameMismatch.3.current-context.yaml":      "line 3, current-context: the name isn't that of the one entry there is; name the same cluster, user and context everywhere",
		"SeveralDocuments.18.second-is-empty.yaml": "line 18: the file holds more than one document; keep one and remove what follows ---",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParsePermitted(testdata(t, name), address.Policy{})
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestRefusalsAreAllOfThemByLine(t *testing.T) {
	const file = `apiVersion: v1
kind: Config
current-context: acme
clusters:
- name: acme
  cluster:
    server: http://api.acme.example
    certificate-authority: /etc/ca.crt
    proxy-url: http://proxy.acme.example
users:
- name: payments
  user:
    exec: {command: login}
    as: somebody
contexts:
- name: acme
  context:
    cluster: acme
    user: shop
    namespace: payments
`
	want := []string{
		"ServerScheme 7 clusters[0].cluster.server",
		"CertificateAuthority 8 clusters[0].cluster.certificate-authority",
		"ProxyURL 9 clusters[0].cluster.proxy-url",
		"Exec 13 users[0].user.exec",
		"Impersonation 14 users[0].user.as",
		"NameMismatch 19 contexts[0].context.user",
		"Namespace 20 contexts[0].context.namespace",
	}
	var got []string
	for _, e := range Refusals([]byte(file)) {
		got = append(got, fmt.Sprintf("%s %d %s", e.Rule, e.Line, e.Field))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := Refusals([]byte(strings.Repeat("a: b\n", 1000))); len(got) != 64 || got[0].Rule != UnknownField {
		t.Errorf("a thousand wrong fields gave %d refusals, the first %v", len(got), got[0])
	}
	if got := Refusals(testdata(t, "good.plain.yaml")); got != nil {
		t.Errorf("a good file has %v", got)
	}
}

func TestParseLeavesTheAddressToWhoConnects(t *testing.T) {
	for _, f := range corpus(t) {
		if f.rule != AddressDenied && f.rule != PortDenied {
			continue
		}
		if _, err := Parse(f.data); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}

func TestParsePermittedAsksTheOperatorsPolicy(t *testing.T) {
	permitted, err := address.New(address.Options{Allow: []string{"127.0.0.0/8"}, Deny: []string{"10.0.0.0/8"}, Ports: []string{"6443"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Rule{
		"AddressDenied.7.loopback.yaml":      "",
		"AddressDenied.7.localhost.yaml":     "",
		"AddressDenied.7.ipv6-loopback.yaml": AddressDenied,
		"good.ipv4.yaml":                     AddressDenied,
		"good.port-443.yaml":                 PortDenied,
		"good.plain.yaml":                    "",
	} {
		_, err := ParsePermitted(testdata(t, name), permitted)
		var refused *Error
		if errors.As(err, &refused); want == "" && err != nil || want != "" && (refused == nil || refused.Rule != want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestEncodeIsReadBack(t *testing.T) {
	for _, f := range corpus(t) {
		k, err := Parse(f.data)
		if err != nil {
			continue
		}
		again, err := Parse(k.Encode())
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
		if values(again) != values(k) || !bytes.Equal(again.CAData, k.CAData) {
			t.Errorf("%s: %q became %q", f.name, values(k), values(again))
		}
	}
}

func TestNewChecksAsParseDoes(t *testing.T) {
	good, err := Parse(testdata(t, "good.plain.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := New("https://API.canary.example:6443/", good.CAData, secret.New("canary-token"))
	if err != nil || values(k) != values(good) || !bytes.Equal(k.CAData, good.CAData) {
		t.Errorf("got %q, %v", values(k), err)
	}
	for sentence, tt := range map[string]struct {
		server, ca, token, field string
		rule                     Rule
	}{
		"a server without TLS": {"http://api.acme.example", string(good.CAData), "canary", serverField, ServerScheme},
		"no CA":                {"https://api.acme.example", "", "canary", caField, CAData},
		"too much CA":          {"https://api.acme.example", strings.Repeat("\n", MaxBytes) + string(good.CAData), "canary", caField, CAData},
		"no token":             {"https://api.acme.example", string(good.CAData), "", tokenField, Token},
		"a token with a blank": {"https://api.acme.example", string(good.CAData), "a canary", tokenField, Token},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := New(tt.server, []byte(tt.ca), secret.New(tt.token))
			var refused *Error
			if !errors.As(err, &refused) || refused.Rule != tt.rule || refused.Field != tt.field || refused.Line != 0 {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheTokenDoesNotPrint(t *testing.T) {
	k, err := Parse(testdata(t, "good.plain.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if out := fmt.Sprintf("%v %+v %#v", k, k, k); strings.Contains(out, "canary-token") {
		t.Errorf("printed: %s", out)
	}
}
