package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/test/world"
)

// reporter is a token by which the agent of a cell reports.
func reporter(t *testing.T, cell string) string {
	t.Helper()
	signed, err := hub.Cell(cell).Token(t.Context(), world.Namespace, world.AgentServiceAccount, 10*time.Minute, world.ReporterAudience)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func capacityOf(cell string) string {
	return "/apis/cellcast.io/v1alpha1/cells/" + cell + "/capacity"
}

// report is a good report, with changes to its spec.
func report(t *testing.T, changes map[string]any) []byte {
	t.Helper()
	spec := map[string]any{
		"sequence":    time.Now().UnixNano(),
		"observedAt":  time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
		"nodes":       1,
		"allocatable": map[string]string{"cpu": "16", "memory": "64Gi", "pods": "110"},
		"requested":   map[string]string{"cpu": "1"},
	}
	for field, value := range changes {
		spec[field] = value
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "cellcast.io/v1alpha1", "kind": "CellCapacity", "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestOnlyTheCellsOwnReporterMayReport(t *testing.T) {
	require(t)
	pipelineToken, err := hub.Token("1", nil)
	if err != nil {
		t.Fatal(err)
	}
	otherAudience, err := hub.Cell("prod-eu").Token(t.Context(), world.Namespace, world.AgentServiceAccount, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	otherAccount, err := hub.Cell("prod-eu").Token(t.Context(), "payments", "deployer", 10*time.Minute, world.ReporterAudience)
	if err != nil {
		t.Fatal(err)
	}
	for sentence, tt := range map[string]struct {
		bearer, cell string
		want         int
	}{
		"its own reporter may":                        {reporter(t, "prod-eu"), "prod-eu", http.StatusCreated},
		"another cell's, with the same issuer string": {reporter(t, "prod-us"), "prod-eu", http.StatusUnauthorized},
		"a cell that isn't registered":                {reporter(t, "prod-eu"), "no-such", http.StatusUnauthorized},
		"a token for the cell's own API server":       {otherAudience, "prod-eu", http.StatusUnauthorized},
		"another ServiceAccount of the cell":          {otherAccount, "prod-eu", http.StatusUnauthorized},
		"a pipeline":                                  {pipelineToken, "prod-eu", http.StatusUnauthorized},
		"nobody":                                      {"", "prod-eu", http.StatusUnauthorized},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, answer := post(t, capacityOf(tt.cell)+"?dryRun=All", tt.bearer, report(t, nil))
			if code != tt.want {
				t.Errorf("got %d, want %d: %s", code, tt.want, answer)
			}
		})
	}
	t.Run("an administrator of the hub may not either", func(t *testing.T) {
		_, err := hub.Admin.CellcastV1alpha1().Cells().CreateCapacity(t.Context(), "prod-eu", &cellcastv1alpha1.CellCapacity{}, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "nobody else") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a reporter may do nothing else", func(t *testing.T) {
		code, answer := post(t, placementsPath, reporter(t, "prod-eu"), question)
		if code != http.StatusUnauthorized {
			t.Errorf("got %d: %s", code, answer)
		}
	})
}

func TestAReportThatIsNotSoundLeavesTheFormerOne(t *testing.T) {
	require(t)
	hub.Cell("dev-eu").Agent.Stop()
	defer hub.Cell("dev-eu").Agent.Start(t.Context())
	bearer := reporter(t, "dev-eu")
	if code, answer := post(t, capacityOf("dev-eu"), bearer, report(t, nil)); code != http.StatusCreated {
		t.Fatalf("a good report gets %d: %s", code, answer)
	}
	replayed := report(t, nil)
	if code, answer := post(t, capacityOf("dev-eu"), bearer, replayed); code != http.StatusCreated {
		t.Fatalf("a good report gets %d: %s", code, answer)
	}
	before, err := hub.Admin.CellcastV1alpha1().Cells().Get(t.Context(), "dev-eu", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) string {
		return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	}
	full := func(name, quantity string) map[string]string {
		list := map[string]string{"cpu": "16", "memory": "64Gi", "pods": "110"}
		list[name] = quantity
		return list
	}
	for sentence, tt := range map[string]struct {
		body []byte
		text string
	}{
		"replayed":                 {replayed, "replay"},
		"older than the window":    {report(t, map[string]any{"observedAt": at(-2 * time.Minute)}), "spec.observedAt"},
		"of the future":            {report(t, map[string]any{"observedAt": at(2 * time.Minute)}), "future"},
		"negative":                 {report(t, map[string]any{"requested": map[string]string{"cpu": "-1"}}), "spec.requested"},
		"no number":                {report(t, map[string]any{"requested": map[string]string{"cpu": "NaN"}}), "quantities must match"},
		"overflowing":              {report(t, map[string]any{"allocatable": full("memory", "1e30")}), "spec.allocatable"},
		"without cpu":              {report(t, map[string]any{"allocatable": full("cpu", "0")}), "spec.allocatable"},
		"nodes and no allocatable": {report(t, map[string]any{"allocatable": map[string]string{}}), "spec.allocatable"},
		"allocatable and no node":  {report(t, map[string]any{"nodes": 0}), "spec.allocatable"},
		"fewer than no nodes":      {report(t, map[string]any{"nodes": -1}), "spec.nodes"},
		"with an unknown field":    {report(t, map[string]any{"usage": 1}), "unknown field"},
	} {
		t.Run(sentence, func(t *testing.T) {
			code, answer := post(t, capacityOf("dev-eu"), bearer, tt.body)
			if code != http.StatusBadRequest || !strings.Contains(answer, tt.text) {
				t.Errorf("got %d, want 400 with %q: %s", code, tt.text, answer)
			}
		})
	}
	after, err := hub.Admin.CellcastV1alpha1().Cells().Get(t.Context(), "dev-eu", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !after.Status.ReportedAt.Equal(before.Status.ReportedAt) || after.Status.UtilisationPercent != before.Status.UtilisationPercent {
		t.Errorf("the report changed from %+v to %+v", before.Status, after.Status)
	}
}

// What runs on a cell steers where the next workload goes: node and pods, agent,
// report, placement.
func TestFromPodsOnACellToThePlacement(t *testing.T) {
	require(t)
	client := doors(t, nil)["direct"]
	for i := range 8 {
		if err := hub.Cell("prod-eu").AddPod(t.Context(), "load", fmt.Sprintf("pod-%d", i), "node-1", corev1.ResourceList(quantities("cpu", "1", "memory", "1Gi"))); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		admin, err := kubernetes.NewForConfig(hub.Cell("prod-eu").Admin.Config())
		if err != nil {
			t.Fatal(err)
		}
		now := int64(0)
		if err := admin.CoreV1().Pods("load").DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the hub knows of the pods", func(ctx context.Context) error {
		cell, err := hub.Admin.CellcastV1alpha1().Cells().Get(ctx, "prod-eu", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cell.Status.Capacity != cellcastv1alpha1.CapacityFresh || cell.Status.UtilisationPercent != "50.0" || cell.Status.WorstResource != "cpu" {
			return fmt.Errorf("prod-eu is %s, at %s %% of %s", cell.Status.Capacity, cell.Status.UtilisationPercent, cell.Status.WorstResource)
		}
		// What other tests placed is reserved for a minute.
		other, err := hub.Admin.CellcastV1alpha1().Cells().Get(ctx, "prod-us", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if percent, err := strconv.ParseFloat(other.Status.UtilisationPercent, 64); err != nil || percent >= 50 || other.Status.Capacity != cellcastv1alpha1.CapacityFresh {
			return fmt.Errorf("prod-us is %s, at %s %%", other.Status.Capacity, other.Status.UtilisationPercent)
		}
		return nil
	})
	answer, err := place(t.Context(), client, ask("payments/api"))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status.Cell.Name != "prod-us" || answer.Status.Confidence != cellcastv1alpha1.ConfidenceHigh {
		t.Errorf("got %s with %s confidence, want prod-us", answer.Status.Cell.Name, answer.Status.Confidence)
	}
}

func TestAnUnregisteredReporterIsNobody(t *testing.T) {
	require(t)
	row := stranger("unreported", map[string]string{"env": "unreported"})
	row.Spec.Reporter = nil
	register(t, row)
	eventually(t, "the condition says so", func(ctx context.Context) error {
		return condition(ctx, "unreported", registryv1alpha1.ConditionReporterTrusted, metav1.ConditionFalse, registryv1alpha1.ReasonNoReporter)
	})
	if code, _ := post(t, capacityOf("unreported"), reporter(t, "prod-eu"), report(t, nil)); code != http.StatusUnauthorized {
		t.Errorf("got %d, want 401", code)
	}
}
