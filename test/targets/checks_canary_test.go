package targets

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/test/world"
)

// canaryFaults are those of the last item. The first of them take longest.
func canaryFaults(t *testing.T) []fault {
	t.Helper()
	failed := func(sentence string, f fault) fault {
		f.sentence, f.check, f.result, f.state = "canary, "+sentence, registryv1alpha1.CheckCanary, registryv1alpha1.CheckFailed, registryv1alpha1.TargetFailed
		return f
	}
	somewhereElse := func(url string) func(*brought, *registryv1alpha1.ClusterTargetSpec) {
		return func(_ *brought, spec *registryv1alpha1.ClusterTargetSpec) { spec.IngestURL = url }
	}
	return []fault{
		failed("no node takes it", fault{
			breaks:  changesPods("nodeSelector: {'cellcast.io/nowhere': 'true'}"),
			message: "The canary pod never started within 1m30s; the target says Unschedulable: 0/1 nodes are available: …",
			more:    []string{" Its events say more."},
			mends:   leavesPodsAlone,
		}),
		failed("no such image", fault{
			breaks:  changesPods("containers: [Object.spec.containers{name: 'canary', image: 'cellcast.io/absent:dev'}]"),
			message: "The canary pod never started within 1m30s; the target says …",
			more: []string{"ImagePull", " Its nodes must be able to pull " + world.CanaryImage +
				": name a pull secret in spec.imagePullSecrets, or ask the hub's operator for an image that they can reach."},
			mends: leavesPodsAlone,
		}),
		failed("nothing listens at its url", fault{
			spec: somewhereElse("https://" + closedPort(t, acme().Node.Address)),
			message: "The canary pod started, and no post of it arrived. Pods of namespace {ns} must be able to connect to {url}: " +
				"check its NetworkPolicies, the firewall on the way, the cluster's DNS, and that the certificate there is signed by a CA that pods are given." +
				" The target says of it: attempt …",
			more:  []string{": no connection: dial tcp ", "connection refused."},
			mends: comesHome,
		}),
		failed("another server refuses it", fault{
			spec:    somewhereElse(impostor(t, http.StatusNotFound)),
			message: "The canary pod started, and what answers at {url} refused its post (404): that isn't the hub's external listener. Correct spec.ingestURL.",
			mends:   comesHome,
		}),
		failed("another server takes it", fault{
			spec: somewhereElse(impostor(t, http.StatusNoContent)),
			message: "The canary's post was taken by something at {url} that isn't this hub, for the hub has no receipt of it. " +
				"Correct spec.ingestURL, or see what stands before the hub there.",
			mends: comesHome,
		}),
		failed("somebody deletes it", fault{
			breaks:    changesPods("nodeSelector: {'cellcast.io/nowhere': 'true'}"),
			meanwhile: deletesTheCanary,
			message:   "Somebody deleted the canary pod before it had reached the hub. See what deletes pods in namespace {ns}, and probe again.",
			mends:     leavesPodsAlone,
		}),
		failed("no service account", fault{
			spec: func(_ *brought, spec *registryv1alpha1.ClusterTargetSpec) { spec.ServiceAccountName = "turns" },
			message: `The target refused the canary pod: pods "cellcast-canary-{run}" is forbidden: error looking up service account {ns}/turns: serviceaccount "turns" not found. ` +
				"Check in namespace {ns} that ServiceAccount turns exists, that the quota has room for a pod, and what admission policies ask of one.",
			mends: func(b *brought, c registryv1alpha1.TargetCheck) {
				applies(b, c) // lists those that there are
				must(b.target.CoreV1().ServiceAccounts(b.name).Create(b.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "turns"}}, metav1.CreateOptions{}))(b.t)
			},
		}),
		failed("a quota", fault{
			breaks: forbidsPodsByQuota,
			message: `The target refused the canary pod: pods "cellcast-canary-{run}" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0. ` +
				"Check in namespace {ns} that ServiceAccount default exists, that the quota has room for a pod, and what admission policies ask of one.",
			mends: func(b *brought, c registryv1alpha1.TargetCheck) {
				applies(b, c)
				if err := b.target.CoreV1().ResourceQuotas(b.name).Delete(b.t.Context(), "none", metav1.DeleteOptions{}); err != nil {
					b.t.Fatal(err)
				}
				b.untilPods("are made", func(_ *corev1.Pod, err error) error { return err })
			},
		}),
		failed("an admission policy", fault{
			breaks: forbidsPodsByPolicy,
			message: `The target refused the canary pod: pods "cellcast-canary-{run}" is forbidden: ValidatingAdmissionPolicy '{ns}' with binding '{ns}' denied request: no pods today. ` +
				"Check in namespace {ns} that ServiceAccount default exists, that the quota has room for a pod, and what admission policies ask of one.",
			mends: func(b *brought, _ registryv1alpha1.TargetCheck) {
				if err := b.target.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(b.t.Context(), b.name, metav1.DeleteOptions{}); err != nil {
					b.t.Fatal(err)
				}
				b.untilPods("are made", func(_ *corev1.Pod, err error) error { return err })
			},
		}),
	}
}

// comesHome sends pods to the hub's own URL again, which has the target probed.
func comesHome(b *brought, _ registryv1alpha1.TargetCheck) {
	b.t.Helper()
	patch := []byte(`{"spec":{"ingestURL":null}}`)
	must(b.hub.RegistryV1alpha1().ClusterTargets(b.name).Patch(b.t.Context(), b.name, types.MergePatchType, patch, metav1.PatchOptions{}))(b.t)
	row := b.first()
	inState(b.t, row, registryv1alpha1.TargetReady)
	if row.Status.Run.Reason != registryv1alpha1.ProbeSpecChanged {
		b.t.Errorf("the run is for the reason %s", row.Status.Run.Reason)
	}
}

// impostor is a server on the link to the pods, with a certificate that the world's
// own authority has signed, which answers whatever it's sent alike.
func impostor(t *testing.T, code int) (url string) {
	t.Helper()
	pair := filepath.Join(hub.Dir, "hub", "cellcast-hub")
	certificate := must(tls.LoadX509KeyPair(pair+".crt", pair+".key"))(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	server.Listener = must(net.Listen("tcp", net.JoinHostPort(acme().Node.Address, "0")))(t)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// deletesTheCanary deletes it as soon as the hub knows which pod it is.
func deletesTheCanary(b *brought) {
	b.t.Helper()
	canary := b.canary()
	if err := b.target.CoreV1().Pods(b.name).Delete(b.t.Context(), canary.PodName, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// canary is that of the present run, once its pod was created.
func (b *brought) canary() (canary registryv1alpha1.ProbeCanary) {
	b.t.Helper()
	patiently(b.t, time.Minute, "the canary of "+b.name+" was created", func(ctx context.Context) error {
		row, err := b.hub.RegistryV1alpha1().ClusterTargets(b.name).Get(ctx, b.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if run := row.Status.Run; run == nil || run.FinishedAt != nil || run.Canary == nil || run.Canary.PodUID == "" {
			return fmt.Errorf("the run is %+v: %s", run, row.Status.Failing)
		}
		canary = *row.Status.Run.Canary
		return nil
	})
	return canary
}

// forbidsPodsByQuota has a quota of no pods, counted as the controller of quotas
// does, which no cluster of the world has.
func forbidsPodsByQuota(b *brought) bool {
	b.t.Helper()
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	quotas := b.target.CoreV1().ResourceQuotas(b.name)
	quota := must(quotas.Create(b.t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}, metav1.CreateOptions{}))(b.t)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	must(quotas.UpdateStatus(b.t.Context(), quota, metav1.UpdateOptions{}))(b.t)
	b.untilPods("exceed the quota", func(_ *corev1.Pod, err error) error {
		if err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Errorf("got %w", errors.Join(errors.New("another answer"), err))
		}
		return nil
	})
	return false
}

// policyManifest is a policy of either kind, and its binding.
const policyManifest = `apiVersion: admissionregistration.k8s.io/v1
kind: %[2]sAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
%[3]s
---
apiVersion: admissionregistration.k8s.io/v1
kind: %[2]sAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
%[4]s
`

// forbidsPodsByPolicy has an administrator of the cluster refuse pods.
func forbidsPodsByPolicy(b *brought) bool {
	b.t.Helper()
	b.administers("Validating", "  validations: [{expression: 'false', message: no pods today}]", "  validationActions: [Deny]")
	b.untilPods("are refused", func(_ *corev1.Pod, err error) error {
		if err == nil {
			return errors.New("they aren't")
		}
		return nil
	})
	return false
}

// changesPods has an administrator of the cluster change the spec of pods, so that
// they don't start.
func changesPods(spec string) func(*brought) bool {
	return func(b *brought) bool {
		b.t.Helper()
		b.administers("Mutating", "  reinvocationPolicy: Never\n  mutations:\n  - patchType: ApplyConfiguration\n    applyConfiguration:\n      expression: >-\n        Object{spec: Object.spec{"+spec+"}}", "")
		b.untilPods("are changed", func(pod *corev1.Pod, err error) error {
			if err == nil && len(pod.Spec.NodeSelector) == 0 && pod.Spec.Containers[0].Image == world.CanaryImage {
				err = errors.New("they aren't")
			}
			return err
		})
		return false
	}
}

// leavesPodsAlone takes that back.
func leavesPodsAlone(b *brought, c registryv1alpha1.TargetCheck) {
	b.t.Helper()
	applies(b, c) // shows the events
	if err := b.target.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Delete(b.t.Context(), b.name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
	b.untilPods("are left alone", func(pod *corev1.Pod, err error) error {
		if err == nil && (len(pod.Spec.NodeSelector) > 0 || pod.Spec.Containers[0].Image != world.CanaryImage) {
			err = errors.New("they aren't")
		}
		return err
	})
}

func (b *brought) administers(kind, rules, binding string) {
	b.t.Helper()
	if err := acme().Apply(b.t.Context(), fmt.Appendf(nil, policyManifest, b.name, kind, rules, binding)); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		admission, ctx := b.target.AdmissionregistrationV1(), context.Background()
		switch kind {
		case "Validating":
			_ = admission.ValidatingAdmissionPolicyBindings().Delete(ctx, b.name, metav1.DeleteOptions{})
			_ = admission.ValidatingAdmissionPolicies().Delete(ctx, b.name, metav1.DeleteOptions{})
		default:
			_ = admission.MutatingAdmissionPolicyBindings().Delete(ctx, b.name, metav1.DeleteOptions{})
			_ = admission.MutatingAdmissionPolicies().Delete(ctx, b.name, metav1.DeleteOptions{})
		}
	})
}

// untilPods tries a pod without making it, until that ends as it should: policies
// take effect a moment after they're written.
func (b *brought) untilPods(what string, as func(*corev1.Pod, error) error) {
	b.t.Helper()
	little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	patiently(b.t, 30*time.Second, "pods in "+b.name+" "+what, func(ctx context.Context) error {
		return as(b.target.CoreV1().Pods(b.name).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "tried"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "canary", Image: world.CanaryImage, Resources: corev1.ResourceRequirements{Requests: little, Limits: little},
			}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	})
}
