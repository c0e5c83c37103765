package resilience

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	"cellcast.io/cellcast/test/world"
)

// All agents' connections end at the first replica here, for the others went
// away and came back. What these know of the fleet, the relay told them.
func TestEveryReplicaRanksEveryCell(t *testing.T) {
	require(t)
	for tries := 1; ; tries++ {
		gather(t)
		for _, replica := range hub.Hub.Servers {
			t.Run(replica.Name()+" ranks", func(t *testing.T) { ranks(t, replica) })
		}
		if tries == 2 || !strayed(t) {
			break
		}
	}
	if direct := count(t, hub.Hub.Servers[0], directly, `subresource="capacity"`); direct < 3 {
		t.Errorf("%v reports came to the first replica, want one of each cell at least", direct)
	}
	for _, replica := range hub.Hub.Servers[1:] {
		t.Run(replica.Name()+" was told", func(t *testing.T) {
			if direct := count(t, replica, directly, `subresource="capacity"`); direct != 0 {
				t.Errorf("%v reports came to it directly, so that it's no proof of the relay", direct)
			}
			if told := count(t, replica, "cellcast_relay_messages_total", `direction="received"`, `kind="report"`, `result="ok"`); told < 3 {
				t.Errorf("it took %v reports of its peers, want one of each cell at least", told)
			}
		})
	}
	t.Run("the relay takes nothing from a caller of another kind", onlyPeersRelay)
	t.Run("a report is refused where it is known by relay", replayedElsewhere)
}

// directly counts the requests that came to a replica, reports among them.
const directly = "apiserver_request_total"

// gather makes every agent report to the first replica: the others end, and
// come back when all agents are there.
func gather(t *testing.T) {
	t.Helper()
	first, others := hub.Hub.Servers[0], hub.Hub.Servers[1:]
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for _, other := range others {
		if err := other.Terminate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	left, client := time.Now(), clientOf(t, first)
	// Times in an answer are whole seconds.
	eventually(t, "every agent reports to the replica that is left", func(ctx context.Context) error {
		return heardSince(ctx, client, left.Add(time.Second))
	})
	for _, other := range others {
		if err := other.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// strayed reports whether an agent came to another replica than the first, as one
// does whose request took too long.
func strayed(t *testing.T) bool {
	t.Helper()
	return slices.ContainsFunc(hub.Hub.Servers[1:], func(replica *world.Server) bool {
		return count(t, replica, directly, `subresource="capacity"`) != 0
	})
}

// ranks checks what a replica says of the fleet, and that it keeps hearing.
func ranks(t *testing.T, replica *world.Server) {
	client, began := clientOf(t, replica), time.Now()
	eventually(t, "it has heard of every cell anew", func(ctx context.Context) error {
		return heardSince(ctx, client, began)
	})
	answer, err := client.CellcastV1alpha1().Placements().Create(t.Context(), &cellcastv1alpha1.Placement{
		Spec: cellcastv1alpha1.PlacementSpec{Workload: workload, Explain: true},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status.Confidence != cellcastv1alpha1.ConfidenceHigh {
		t.Errorf("it answers with confidence %s", answer.Status.Confidence)
	}
	if len(answer.Status.Candidates) != len(hub.Cells) {
		t.Errorf("it ranked %d cells: %+v", len(answer.Status.Candidates), answer.Status.Candidates)
	}
	for _, candidate := range answer.Status.Candidates {
		if candidate.Verdict == cellcastv1alpha1.VerdictExcluded || candidate.UtilisationPercent == "" {
			t.Errorf("%s isn't ranked: %+v", candidate.Cell, candidate)
		}
	}
}

const relayPath = "/relay/v1/batch"

func onlyPeersRelay(t *testing.T) {
	pipeline, err := hub.Token(repositoryID, nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := hub.Hub.Token(t.Context(), world.Namespace, world.HubServiceAccount, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	batch := fmt.Appendf(nil, `{"from":"a-test","number":1,"sentAt":%q}`, time.Now().UTC().Format(time.RFC3339Nano))
	for who, bearer := range map[string]string{
		"nobody":                   "",
		"a pipeline":               pipeline,
		"an agent":                 reporter(t, "eu"),
		"the hub, as its API sees": own,
	} {
		for _, replica := range hub.Hub.Servers {
			if code, answer := post(t, replica, relayPath, bearer, batch); code != http.StatusUnauthorized && code != http.StatusForbidden {
				t.Errorf("%s at %s: got %d %s", who, replica.Name(), code, answer)
			}
		}
	}
}

// replayedElsewhere reports to one replica, and then the same to one that has it
// by relay.
func replayedElsewhere(t *testing.T) {
	cell := hub.Cell("eu")
	if err := cell.Agent.Stop(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cell.Agent.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	first, last := hub.Hub.Servers[0], hub.Hub.Servers[2]
	path, bearer := "/apis/cellcast.io/v1alpha1/cells/eu/capacity", reporter(t, "eu")
	now := time.Now()
	report, err := json.Marshal(map[string]any{"apiVersion": "cellcast.io/v1alpha1", "kind": "CellCapacity", "spec": map[string]any{
		"sequence": now.UnixNano(), "observedAt": metav1.NewMicroTime(now), "nodes": 1,
		"allocatable": map[string]string{"cpu": "16", "memory": "64Gi", "pods": "110"},
		"requested":   map[string]string{"cpu": "6"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if code, answer := post(t, first, path, bearer, report); code != http.StatusCreated {
		t.Fatalf("got %d %s", code, answer)
	}
	client := clientOf(t, last)
	eventually(t, "the other replica knows the report", func(ctx context.Context) error {
		cells, err := cellsOf(ctx, client)
		if err == nil && cells["eu"].UtilisationPercent != "37.5" {
			err = errors.New("it knows " + cells["eu"].UtilisationPercent)
		}
		return err
	})
	code, answer := post(t, last, path, bearer, report)
	if code != http.StatusBadRequest || !strings.Contains(answer, "replay") {
		t.Errorf("got %d, want 400 with a word on the replay: %s", code, answer)
	}
}

// reporter is a token by which the agent of a cell reports.
func reporter(t *testing.T, cell string) string {
	t.Helper()
	token, err := hub.Cell(cell).Token(t.Context(), world.Namespace, world.AgentServiceAccount, 10*time.Minute, world.ReporterAudience)
	if err != nil {
		t.Fatal(err)
	}
	return token
}
