package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellcast.io/cellcast/pkg/cli/stanza"
)

// runIssuer runs the command alone.
func runIssuer(args ...string) (string, error) {
	var out bytes.Buffer
	command := Env{Out: &out}.issuerCommand("cellcast")
	command.SetArgs(args)
	command.SetOut(&out)
	command.SetErr(&out)
	command.SilenceErrors, command.SilenceUsage = true, true
	err := command.Execute()
	return out.String(), err
}

func TestIssuerPrintsTheStanza(t *testing.T) {
	for name, test := range map[string]struct {
		args     []string
		platform string
		options  stanza.Options
	}{
		"of a platform with an issuer of its own": {[]string{"github"}, "github", stanza.Options{Audience: "cellcast.io/hub"}},
		"as the flags have it": {
			[]string{"kubernetes", "--issuer", "https://build.example.com", "--discovery-url", "https://mirror.example.com/x", "--audience", "https://hub.example.com"},
			"kubernetes", stanza.Options{Issuer: "https://build.example.com", DiscoveryURL: "https://mirror.example.com/x", Audience: "https://hub.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := stanza.Write(test.platform, test.options)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := runIssuer(test.args...); err != nil || got != string(want) {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestIssuerIsUsedWrongly(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty, word, long := file("empty", ""), file("word", "s3cret"), file("long", strings.Repeat("s3cret", 20_000))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"without a platform":       {nil, "which CI platform? One of buildkite, circleci, generic, github, gitlab, kubernetes"},
		"for an unknown platform":  {[]string{"jenkins"}, `no CI platform is known as "jenkins"; there are buildkite, circleci, generic, github, gitlab, kubernetes`},
		"without the issuer":       {[]string{"circleci"}, "circleci has no issuer of its own: give --issuer, https://oidc.circleci.com/org/ORGANIZATION_ID"},
		"with an empty audience":   {[]string{"github", "--audience", ""}, "--audience must be a word: what the job's tokens are asked for"},
		"with an empty CA":         {[]string{"github", "--ca", empty}, "the file " + empty + " of --ca is empty"},
		"with a CA that is none":   {[]string{"github", "--ca", word}, "the file of --ca holds no PEM certificate"},
		"with a CA without an end": {[]string{"github", "--ca", long}, "the file of --ca is longer than 48 KiB: give the issuer's own CA alone"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := runIssuer(test.args...)
			var usage *usageError
			if !errors.As(err, &usage) || usage.message != test.want || out != "" {
				t.Errorf("got  %v\nwant %s\n%s", err, test.want, out)
			}
		})
	}
	t.Run("with a CA that isn't there", func(t *testing.T) {
		_, err := runIssuer("github", "--ca", filepath.Join(dir, "no"))
		var usage *usageError
		if !errors.Is(err, os.ErrNotExist) || errors.As(err, &usage) {
			t.Errorf("got %v", err)
		}
	})
}
