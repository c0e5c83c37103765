package caller

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/test/issuer"
)

const audience = "cellcast.io/hub"

func startIssuer(t testing.TB, o issuer.Options) *issuer.Issuer {
	t.Helper()
	i, err := issuer.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

// trust is an entry of an AuthenticationConfiguration.
type trust struct {
	issuer    *issuer.Issuer
	url       string // of the issuer, where it isn't the issuer's own
	discovery string
	mappings  string // claimMappings as YAML flow; usual where empty
	rules     string // further fields of the entry, as YAML flow members
}

const usual = `{username: {claim: sub, prefix: ""}, extra: [{key: claims.cellcast.io/repository, valueExpression: "claims.?repository.orValue('')"}]}`

func config(entries ...trust) string {
	var b strings.Builder
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n")
	for _, e := range entries {
		if e.url == "" {
			e.url = e.issuer.URL()
		}
		if e.mappings == "" {
			e.mappings = usual
		}
		if e.rules != "" {
			e.rules = ", " + e.rules
		}
		ca, err := json.Marshal(string(e.issuer.CA()))
		if err != nil {
			panic(err) // a string always encodes
		}
		fmt.Fprintf(&b, "- {issuer: {url: %q, discoveryURL: %q, audiences: [%q], certificateAuthority: %s}, claimMappings: %s%s}\n",
			e.url, e.discovery, audience, ca, e.mappings, e.rules)
	}
	return b.String()
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newPipelines(t testing.TB, times keyset.Options, entries ...trust) (*Pipelines, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	write(t, file, config(entries...))
	p, err := NewPipelines(t.Context(), PipelineOptions{File: file, Keys: times})
	if err != nil {
		t.Fatal(err)
	}
	return p, file
}

// claims of a pipeline that is let in; the other arguments are names and
// values that replace them.
func goodClaims(changes ...any) map[string]any {
	c := issuer.CIClaims(issuer.Run{
		Repository: "octo-org/shop", RepositoryID: "42", Owner: "octo-org", OwnerID: "7",
		Ref: "refs/heads/main", Environment: "production", Audience: audience,
	})
	for i := 0; i < len(changes); i += 2 {
		c[changes[i].(string)] = changes[i+1]
	}
	return c
}

func sign(t testing.TB, i *issuer.Issuer, how issuer.Signing, changes ...any) string {
	t.Helper()
	token, err := i.Sign(goodClaims(changes...), how)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// wantFailure fails the test unless err is a Failure of the reason with
// exactly this text that doesn't quote the token.
func wantFailure(t testing.TB, err error, reason Reason, text, token string) {
	t.Helper()
	var failure *Failure
	if !errors.As(err, &failure) {
		t.Fatalf("got error %v, want a Failure", err)
	}
	if failure.Reason != reason {
		t.Errorf("reason %s, want %s (%v)", failure.Reason, reason, err)
	}
	if err.Error() != text {
		t.Errorf("text\n%s, want\n%s", err, text)
	}
	for _, part := range strings.Split(token, ".") {
		if len(part) > 20 && bytes.Contains([]byte(err.Error()), []byte(part)) {
			t.Errorf("the error quotes the token: %s", err)
		}
	}
}

func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }
