package caller

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"cellcast.io/cellcast/pkg/keyset"
	"cellcast.io/cellcast/test/issuer"
)

func TestReload(t *testing.T) {
	a, b := startIssuer(t, issuer.Options{}), startIssuer(t, issuer.Options{})
	p, file := newPipelines(t, keyset.Options{}, trust{issuer: a}, trust{issuer: b})
	letIn := func(i *issuer.Issuer, changes ...any) bool {
		t.Helper()
		_, ok, _ := p.AuthenticateToken(t.Context(), sign(t, i, issuer.Signing{}, changes...))
		return ok
	}
	reload := func(content string) (bool, error) {
		t.Helper()
		write(t, file, content)
		return p.reload(t.Context())
	}
	if !letIn(a) || !letIn(b) {
		t.Fatal("a configured issuer was refused")
	}
	if changed, err := reload(config(trust{issuer: a}, trust{issuer: b})); changed || err != nil {
		t.Errorf("the same file: got %v, %v", changed, err)
	}

	if changed, err := reload(config(trust{issuer: a, rules: `claimValidationRules: [{claim: ref, requiredValue: refs/heads/main}]`})); !changed || err != nil {
		t.Fatalf("a good file: got %v, %v", changed, err)
	}
	if letIn(b) {
		t.Error("a removed issuer was let in")
	}
	if !letIn(a) || letIn(a, "ref", "refs/heads/x") {
		t.Error("the new rule doesn't hold")
	}
	if diff := cmp.Diff([]string{a.URL()}, p.Issuers()); diff != "" {
		t.Errorf("issuers (-want +got):\n%s", diff)
	}

	const want = "read the authentication configuration: couldn't get version/kind; json parse error: " +
		"json: cannot unmarshal string into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"
	if changed, err := reload("nonsense"); changed || err == nil || err.Error() != want {
		t.Errorf("a bad file: got %v, %v", changed, err)
	}
	if changed, err := p.reload(t.Context()); changed || err != nil {
		t.Errorf("the same bad file once more: got %v, %v", changed, err)
	}
	if !letIn(a) || letIn(a, "ref", "refs/heads/x") || letIn(b) {
		t.Error("a bad file changed who is let in")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if changed, err := p.reload(t.Context()); changed || err == nil {
		t.Errorf("no file: got %v, %v", changed, err)
	}
	if !letIn(a) {
		t.Error("a missing file changed who is let in")
	}
	if changed, err := reload(config(trust{issuer: a}, trust{issuer: b})); !changed || err != nil {
		t.Errorf("a good file at last: got %v, %v", changed, err)
	}
	if !letIn(a) || !letIn(b) {
		t.Error("the good file doesn't hold")
	}
	if got, want := a.Fetches(), (issuer.Fetches{Discovery: 1, Keys: 1}); got != want {
		t.Errorf("an issuer whose keys come from the same place was asked %+v, want %+v", got, want)
	}
}

func TestBadFileAtStartIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	if _, err := NewPipelines(t.Context(), PipelineOptions{File: file}); err == nil {
		t.Error("a missing file was taken")
	}
	write(t, file, "kind: AuthenticationConfiguration\n")
	if _, err := NewPipelines(t.Context(), PipelineOptions{File: file}); err == nil {
		t.Error("a bad file was taken")
	}
}

func TestNoFileTrustsNobody(t *testing.T) {
	ci := startIssuer(t, issuer.Options{})
	p, err := NewPipelines(t.Context(), PipelineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Run(t.Context()) // returns at once
	token := sign(t, ci, issuer.Signing{})
	_, _, err = p.AuthenticateToken(t.Context(), token)
	wantFailure(t, err, ReasonIssuer, `Issuer: no issuer "`+ci.URL()+`" is configured`, token)
	if got := p.Issuers(); len(got) != 0 {
		t.Errorf("issuers %v", got)
	}
}

func TestRunFollowsTheFile(t *testing.T) {
	a, b := startIssuer(t, issuer.Options{}), startIssuer(t, issuer.Options{})
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	write(t, file, config(trust{issuer: a}))
	outcomes := make(chan error, 10)
	p, err := NewPipelines(t.Context(), PipelineOptions{
		File: file, OnReload: func(err error) { outcomes <- err },
		Keys: keyset.Options{Clock: testingclock.NewFakeClock(time.Now())},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	defer running.Wait()
	defer stop()

	// As a ConfigMap volume does it: the new content replaces the old at once.
	replace := func(content string) error {
		write(t, file+".new", content)
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-outcomes:
			return err
		case <-time.After(30 * time.Second):
			t.Fatal("the change was not seen")
			return nil
		}
	}
	if err := replace(config(trust{issuer: b})); err != nil {
		t.Errorf("a good file: %v", err)
	}
	if diff := cmp.Diff([]string{b.URL()}, p.Issuers()); diff != "" {
		t.Errorf("issuers (-want +got):\n%s", diff)
	}
	if err := replace("nonsense"); err == nil {
		t.Error("a bad file was taken")
	}
	if diff := cmp.Diff([]string{b.URL()}, p.Issuers()); diff != "" {
		t.Errorf("issuers after a bad file (-want +got):\n%s", diff)
	}
}
