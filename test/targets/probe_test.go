package targets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

func TestATargetBecomesReadyByARealPod(t *testing.T) {
	requireNode(t)
	b := bring(t)
	b.keep(b.kubeconfig(b.token))
	b.register(nil)
	row := b.first()
	inState(t, row, registryv1alpha1.TargetReady)

	var results []string
	for _, c := range row.Status.Checks {
		results = append(results, string(c.Name)+" "+string(c.Result))
	}
	want := []string{"Credential Passed", "Reachable Passed", "Authenticated Passed", "Namespace Passed", "Permissions Passed", "ExcessPermissions Passed",
		"PullSecrets Skipped", "SigningKeys Passed", "Tokens Passed", "LocalQueue Skipped", "SandboxResource Skipped", "Canary Passed"}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Errorf("items (-want +got):\n%s\n%+v", diff, row.Status.Checks)
	}
	if diff := cmp.Diff([]registryv1alpha1.TargetCapability{registryv1alpha1.CapabilityAgentTurns, registryv1alpha1.CapabilityTokens}, row.Status.Capabilities); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	canary := row.Status.Run.Canary
	if canary == nil || canary.PodUID == "" || canary.ReceivedAt == nil || canary.DeletedAt == nil {
		t.Errorf("the canary is %+v", canary)
	}
	if row.Spec.Owner.User != "dana" {
		t.Errorf("the owner is %+v, and dana made the row", row.Spec.Owner)
	}
	pods := must(b.target.CoreV1().Pods(b.name).List(t.Context(), metav1.ListOptions{}))(t)
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			t.Errorf("pod %s is left behind", pod.Name)
		}
	}
}
