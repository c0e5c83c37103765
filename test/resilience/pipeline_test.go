package resilience

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/pkg/cli"
	"cellcast.io/cellcast/pkg/refusal"
)

// outcome is how one run of the client ended.
type outcome struct {
	// began and ended are counted from the beginning of the load.
	began, ended time.Duration
	// exit is the client's exit code. Where it isn't 0, reason is the refusal's code
	// or, where the hub sent none, the Status' reason, and message what it says.
	exit            int
	reason, message string
	// hidden are the reasons for which the run asked again.
	hidden []string
}

// pipelines run the client as a CI job does.
type pipelines struct {
	dir, token, ca string
	began          time.Time
	minted         minted
}

func newPipelines(t *testing.T) *pipelines {
	t.Helper()
	token, err := hub.Token(repositoryID, map[string]any{"exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	p := &pipelines{dir: t.TempDir(), ca: hub.Hub.Door().CAFile}
	p.token = filepath.Join(p.dir, "oidc.jwt")
	if err := os.WriteFile(p.token, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// place runs the client once.
func (p *pipelines) place(ctx context.Context, number int) outcome {
	o := outcome{began: time.Since(p.began), exit: -1}
	door, err := openGate()
	if err != nil {
		o.ended, o.reason, o.message = time.Since(p.began), "Test", err.Error()
		return o
	}
	defer door.close()
	cache := filepath.Join(p.dir, fmt.Sprint(number))
	defer os.RemoveAll(cache)
	var out, errs bytes.Buffer
	heard := 0
	o.exit = cli.Run(ctx, cli.Env{
		Args: []string{"cellcast", "place", workload, "--hub", door.url, "--hub-ca", p.ca, "--token-file", p.token,
			"--timeout", patience.String(), "-o", "json"},
		Out: &out, Err: &errs, Now: time.Now,
		Getenv: func(key string) string { return map[string]string{"CELLCAST_CACHE_DIR": cache}[key] },
		Sleep: func(ctx context.Context, d time.Duration) error {
			o.hidden = append(o.hidden, hiddenBy(errs.String()[heard:]))
			heard = errs.Len()
			return sleep(ctx, d)
		},
	})
	o.ended = time.Since(p.began)
	if o.exit == 0 {
		p.check(&o, out.Bytes(), cache)
	} else {
		o.explain(out.Bytes(), errs.String())
	}
	return o
}

// check makes an outcome without a credential a failure, and one whose token the
// client kept.
func (p *pipelines) check(o *outcome, answer []byte, cache string) {
	var placed cellcastv1alpha1.Placement
	err := json.Unmarshal(answer, &placed)
	if err != nil || placed.Status.Cell.Name == "" || placed.Status.Credential == nil || placed.Status.Credential.Token == "" {
		o.exit, o.reason, o.message = -1, "NoAnswer", fmt.Sprintf("exit code 0, and no cell with a credential: %v", err)
		return
	}
	var own minted
	own.add(placed.Status.Credential.Token)
	if kept, searched, err := own.under(cache); err != nil || len(kept) > 0 || searched == 0 {
		o.exit, o.reason, o.message = -1, "TokenKept", fmt.Sprintf("of %d files of the cache, %v hold the token: %v", searched, kept, err)
		return
	}
	p.minted.add(placed.Status.Credential.Token)
}

// explain reads the Status that the client printed for its pipeline.
func (o *outcome) explain(answer []byte, said string) {
	var status metav1.Status
	if err := json.Unmarshal(answer, &status); err != nil {
		o.reason, o.message = "NoStatus", said
		return
	}
	o.reason, o.message = string(status.Reason), status.Message
	if status.Details != nil && len(status.Details.Causes) > 0 {
		o.reason = string(status.Details.Causes[0].Type)
	}
}

// unsaid is why a client asks again within a second, of which it doesn't speak:
// a connection broke, or the hub said to wait no longer.
const unsaid = "unsaid"

// hiddenBy is why a client asks again, by what it has just said.
func hiddenBy(said string) string {
	why, _, found := strings.Cut(said, "; asking again in ")
	if !found {
		return unsaid
	}
	code, _, _ := strings.Cut(why, ":")
	for _, m := range refusal.Meanings() {
		if string(m.Code) == code {
			return code
		}
	}
	return "no answer:" + why[strings.LastIndex(why, ":")+1:] // without addresses
}
