package bring

import (
	"fmt"
	"strings"
	"testing"
)

const source = `apiVersion: v1
kind: Config
current-context: eu
contexts: [{name: eu, context: {cluster: eu, user: me, namespace: elsewhere}}]
clusters: [{name: eu, cluster: {server: "https://eu.example.com"}}]
users: [{name: me, user: %s}]
`

func TestOnlyATokenThatStandsAloneIsTaken(t *testing.T) {
	for user, want := range map[string]string{
		"{token: t.SECRET}":                                       "t.SECRET",
		"{token: t.SECRET, as: jo}":                               "",
		"{token: t.SECRET, tokenFile: f}":                         "",
		"{token: t.SECRET, client-certificate: c, client-key: k}": "",
		"{token: t.SECRET, username: u, password: p}":             "",
		"{exec: {apiVersion: client.authentication.k8s.io/v1, command: c, interactiveMode: Never}}": "",
		"{}": "",
	} {
		read, err := Read(fmt.Appendf(nil, source, user), "", "")
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		if got := read.Token().Reveal(); got != want {
			t.Errorf("%s: got %q, want %q", user, got, want)
		}
		for _, refused := range read.Refusals() {
			if refused.Line != 0 || strings.Contains(refused.Error(), "SECRET") {
				t.Errorf("%s: it names a line of a copy, or quotes: %v", user, refused)
			}
		}
	}
}
