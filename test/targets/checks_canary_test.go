package targets

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe/contract"
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
			breaks:  changesPods(nowhere),
			message: "The canary pod never started within 1m30s; the target says Unschedulable: 0/1 nodes are available: …",
			more:    []string{" Its events say more."},
			mends:   leavesPodsAlone,
		}),
		failed("no such image", fault{
			breaks:  changesPods(absentImage),
			message: "The canary pod never started within 1m30s; the target says …",
			more: []string{"ImagePull", " Its nodes must be able to pull " + world.CanaryImage +
				": name a pull secret in spec.imagePullSecrets (kubectl edit clustertarget {ns} -n {ns}), or ask the hub's operator for an image that they can reach."},
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
			message: "The canary pod started, and what answers at {url} refused its post (404): that isn't the hub's external listener, so correct spec.ingestURL.",
			mends:   editsTheURLOut,
		}),
		failed("another server takes it", fault{
			spec: somewhereElse(impostor(t, http.StatusNoContent)),
			message: "The canary's post was taken by something at {url} that isn't this hub, for the hub has no receipt of it. " +
				"See what stands before the hub there, or correct spec.ingestURL.",
			mends: editsTheURLOut,
		}),
		failed("somebody deletes it", fault{
			breaks:    changesPods(nowhere),
			meanwhile: deletesTheCanary,
			message:   "Somebody deleted the canary pod before it had reached the hub. See what deletes pods in namespace {ns}, and probe again.",
			mends:     leavesPodsAlone,
		}),
		failed("no service account", fault{
			breaks: func(b *brought) bool { // the right to mint is of the one that pods shall run as
				role := contract.Tokens.Role(registryv1alpha1.ClusterTargetSpec{Namespace: b.name, ServiceAccountName: "turns"}, contract.Account(b.name, account))
				must(b.target.RbacV1().Roles(b.name).Update(b.t.Context(), role, metav1.UpdateOptions{}))(b.t)
				b.untilMay(false, "create", "serviceaccounts/token default")
				return false
			},
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
	b.isHome()
}

// editsTheURLOut does the same by the remedy, which opens the row in an editor.
func editsTheURLOut(b *brought, c registryv1alpha1.TargetCheck) {
	b.t.Helper()
	applies(b, c)
	b.isHome()
}

// isHome waits for the probe of a row whose pods post to the hub's own URL.
func (b *brought) isHome() {
	b.t.Helper()
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
	canary := b.canary(b.name)
	if err := b.target.CoreV1().Pods(b.name).Delete(b.t.Context(), canary.PodName, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// canary is that of a row's present run, once its pod was created.
func (b *brought) canary(name string) (canary registryv1alpha1.ProbeCanary) {
	b.t.Helper()
	patiently(b.t, time.Minute, "the canary of "+name+" was created", func(ctx context.Context) error {
		row, err := b.hub.RegistryV1alpha1().ClusterTargets(b.name).Get(ctx, name, metav1.GetOptions{})
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
