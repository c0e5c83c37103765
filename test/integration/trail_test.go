package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cellcast.io/cellcast/generated/clientset/versioned"
	"cellcast.io/cellcast/pkg/refusal"
	"cellcast.io/cellcast/test/world"
)

// replica starts a further cellcast-hub that has heard from every cell, and
// returns a client of it for the pipeline of a repository.
func replica(t *testing.T, repositoryID string, o world.ServerOptions) (*world.Server, versioned.Interface) {
	t.Helper()
	o.Name, o.PipelineAuthentication = unique(t), hub.Authentication
	o.Args = append(o.Args, "--warmup-timeout=0s") // ready at once, and warm by the reports below
	server, err := hub.Hub.AddReplica(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	token, err := hub.Token(repositoryID, nil)
	if err != nil {
		t.Fatal(err)
	}
	config := hub.Direct(token)
	config.Host = server.URL
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range hub.Cells {
		if code, answer := postTo(t, server.URL, capacityOf(cell.Name), reporter(t, cell.Name), report(t, nil)); code != http.StatusCreated {
			t.Fatalf("the report of %s: %d %s", cell.Name, code, answer)
		}
	}
	return server, client
}

// An audit trail that can't be written is an audit trail that can be silenced,
// unless nothing is issued then.
func TestAHubThatCannotWriteItsTrailIssuesNothing(t *testing.T) {
	require(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("there is no full disk to be had: %v", err)
	}
	defer full.Close()
	unread, closed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	unread.Close()
	defer closed.Close()
	for sentence, stdout := range map[string]*os.File{"a full disk": full, "a closed standard output": closed} {
		t.Run(sentence, func(t *testing.T) {
			policy(t, unique(t), nil)
			server, client := replica(t, unique(t), world.ServerOptions{Stdout: stdout})
			before := tokenRequests(t)
			for range 3 {
				_, err := place(t.Context(), client, ask("payments/api"))
				refused(t, err, refusal.PlacementUnavailable, http.StatusServiceUnavailable, "audit trail")
			}
			if now := tokenRequests(t); now != before {
				t.Errorf("%d tokens were minted unaudited", now-before)
			}
			if server.PID() == 0 {
				t.Error("the hub has ended")
			}
		})
	}
}

// What was refused before anything was decided is in the trail as well.
func TestWhatStrangersTryIsInTheTrail(t *testing.T) {
	require(t)
	count := func(event string) int {
		return strings.Count(read(t, hub.Hub.Server.LogFile()), `"event":"`+event+`"`)
	}
	for event, try := range map[string]func(){
		"authentication_failed": func() {
			if code, _ := post(t, placementsPath, "eyJhbGciOiJSUzI1NiJ9.e30.c2ln", question); code != http.StatusUnauthorized {
				t.Errorf("junk gets %d", code)
			}
		},
		"admission_refused": func() {
			patch := []byte(`{"metadata":{"annotations":{"note":"Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlc2lnbmF0dXJl"}}}`)
			if _, err := hub.Admin.RegistryV1alpha1().Clusters().Patch(t.Context(), "dev-eu", types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
				t.Error("a token went into a row")
			}
		},
		"report_refused": func() {
			if code, _ := post(t, capacityOf("dev-eu"), reporter(t, "dev-eu"), report(t, map[string]any{"nodes": -1})); code != http.StatusBadRequest {
				t.Errorf("a report of -1 nodes gets %d", code)
			}
		},
	} {
		t.Run(event, func(t *testing.T) {
			before := count(event)
			try()
			// They are written behind the answer.
			eventually(t, "it's in the trail", func(context.Context) error {
				if count(event) == before {
					return errors.New("there is no record")
				}
				return nil
			})
		})
	}
}

// What silences the log doesn't silence the trail.
func TestNoLogLevelTouchesTheTrail(t *testing.T) {
	require(t)
	stdout, err := os.Create(filepath.Join(t.TempDir(), "trail"))
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	policy(t, unique(t), nil)
	server, client := replica(t, unique(t), world.ServerOptions{Stdout: stdout, Args: []string{"-v=0", "--log-level=error"}})
	const placements = 20
	for range placements {
		if _, err := place(t.Context(), client, ask("payments/api")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := place(t.Context(), client, ask("Not A Workload")); err == nil {
		t.Fatal("it was placed")
	}
	count := map[string]int{}
	for line := range bytes.Lines([]byte(read(t, stdout.Name()))) {
		var record struct{ Event, Outcome string }
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		count[record.Event+" "+record.Outcome]++
	}
	for kind, want := range map[string]int{"placement allowed": placements, "mint allowed": placements, "placement refused": 1} {
		if count[kind] != want {
			t.Errorf("%d records of %s, want %d", count[kind], kind, want)
		}
	}
	if log := read(t, server.LogFile()); strings.Contains(log, "\nI1") || strings.Contains(log, "\nW1") {
		t.Errorf("the log isn't quiet, so that the test shows nothing:\n%s", first(log, 2000))
	}
}

func first(text string, n int) string { return fmt.Sprintf("%.*s", n, text) }
