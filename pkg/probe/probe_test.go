package probe

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

func TestAllItemsPass(t *testing.T) {
	inBubble(t, func(t *testing.T, tr *trial) {
		r := tr.run()
		want := map[registryv1alpha1.TargetCheckName]string{
			registryv1alpha1.CheckCredential:    "The kubeconfig was read and has the closed form.",
			registryv1alpha1.CheckReachable:     "The hub connects to the target's API.",
			registryv1alpha1.CheckAuthenticated: "The target's API knows the credential as system:serviceaccount:team:cellcast-lab.",
			registryv1alpha1.CheckNamespace:     "Namespace team exists.",
			registryv1alpha1.CheckPermissions:   "The credential may do all that the hub needs.",
			registryv1alpha1.CheckExcess:        "In namespace team the credential may do nothing beyond the contract.",
			registryv1alpha1.CheckPullSecrets:   "The pull secrets exist.",
			registryv1alpha1.CheckSigningKeys:   "The target's signing keys can be read; its issuer is https://kubernetes.default.svc.cluster.local.",
			registryv1alpha1.CheckTokens:        "The credential may mint tokens of ServiceAccount turns, for clustertargets/token.",
			registryv1alpha1.CheckLocalQueue:    "LocalQueue measure exists.",
			registryv1alpha1.CheckSandbox:       "The target serves sandboxes.agents.x-k8s.io, and the credential may use them.",
			registryv1alpha1.CheckCanary:        "A canary pod started, proved who it is, and reached the hub.",
		}
		var names []registryv1alpha1.TargetCheckName
		for _, c := range r.Checks {
			names = append(names, c.Name)
			if c.Result != registryv1alpha1.CheckPassed || c.Remedy != "" {
				t.Errorf("%s: %s, remedy %q", c.Name, c.Result, c.Remedy)
			}
			if c.Message != want[c.Name] {
				t.Errorf("%s: message\n%s, want\n%s", c.Name, c.Message, want[c.Name])
			}
		}
		if diff := cmp.Diff(registryv1alpha1.TargetChecks(), names); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
		r.Checks = nil
		identity := registryv1alpha1.TargetIdentity{Issuer: "https://kubernetes.default.svc.cluster.local", Audience: "https://hub.example.com"}
		wantResult := Result{
			State: registryv1alpha1.TargetReady,
			Capabilities: []registryv1alpha1.TargetCapability{registryv1alpha1.CapabilityAgentTurns, registryv1alpha1.CapabilityTokens,
				registryv1alpha1.CapabilityMeasure, registryv1alpha1.CapabilityKubernetesSandbox},
			Identity: &identity,
		}
		if diff := cmp.Diff(wantResult, r); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
	})
}

func TestProgressIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, tr *trial) {
		tr.run()
		want := []string{
			"identified",
			"named cellcast-canary-r-1",
			"create cellcast-canary-r-1",
			"created pod-uid",
			"received",
			`delete cellcast-canary-r-1 "pod-uid"`,
			"deleted, with a context that is over: false",
		}
		if diff := cmp.Diff(want, *tr.target.diary); diff != "" {
			t.Errorf("steps (-want +got):\n%s", diff)
		}
		if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; !slices.Equal(tr.record.counts, want) {
			t.Errorf("told after items %v, want %v", tr.record.counts, want)
		}
		if tr.record.identity.Issuer == "" || tr.record.identity.Audience != "https://hub.example.com" {
			t.Errorf("identified as %+v", tr.record.identity)
		}
	})
}

func TestEachVerbOfTheContractIsListed(t *testing.T) {
	inBubble(t, func(t *testing.T, tr *trial) {
		var got []string
		for _, i := range checkOf(t, tr.run(), registryv1alpha1.CheckPermissions).Items {
			got = append(got, i.Name+" "+string(i.Result))
		}
		want := []string{
			"create pods Passed", "get pods Passed", "list pods Passed", "watch pods Passed", "delete pods Passed",
			"get pods/log Passed",
			"create configmaps Passed", "get configmaps Passed", "list configmaps Passed", "watch configmaps Passed", "delete configmaps Passed",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
		if tr.target.crowded != atOnce {
			t.Errorf("%d reviews at once, want %d", tr.target.crowded, atOnce)
		}
	})
}

func TestTargetThatUsesNothingOptional(t *testing.T) {
	inBubble(t, func(t *testing.T, tr *trial) {
		tr.spec.Target.ImagePullSecrets, tr.spec.Target.Queue, tr.spec.Target.SandboxDriver = nil, "", registryv1alpha1.SandboxPodman
		tr.target.rules = rulesOf(tr.spec.Target)
		r := tr.run()
		for name, message := range map[registryv1alpha1.TargetCheckName]string{
			registryv1alpha1.CheckPullSecrets: "spec.imagePullSecrets names none.",
			registryv1alpha1.CheckLocalQueue:  "spec.queue names none, so the target runs no measure jobs.",
			registryv1alpha1.CheckSandbox:     "spec.sandboxDriver is Podman: a pod makes its sandboxes itself.",
		} {
			if c := checkOf(t, r, name); c.Result != registryv1alpha1.CheckSkipped || c.Message != message {
				t.Errorf("%s: %s: %s", name, c.Result, c.Message)
			}
		}
		want := []registryv1alpha1.TargetCapability{registryv1alpha1.CapabilityAgentTurns, registryv1alpha1.CapabilityTokens}
		if r.State != registryv1alpha1.TargetReady || !slices.Equal(r.Capabilities, want) {
			t.Errorf("state %s, capabilities %v", r.State, r.Capabilities)
		}
	})
}
