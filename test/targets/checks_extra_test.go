package targets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/probe/contract"
)

// turnsAndTokens is what a target is good for that has no more than the contract.
func turnsAndTokens() []registryv1alpha1.TargetCapability {
	return []registryv1alpha1.TargetCapability{registryv1alpha1.CapabilityAgentTurns, registryv1alpha1.CapabilityTokens}
}

// extraFaults are of items that don't end a probe.
func extraFaults() []fault {
	const excess = "Whoever took over the hub could do that too: bind its ServiceAccount to the contract's Role alone. The command that the probe prints shows what else it's bound to."
	return []fault{
		{
			sentence: "excess, reads secrets",
			breaks: func(b *brought) bool {
				b.alsoMay(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "get"}})
				return false
			},
			check: registryv1alpha1.CheckExcess, result: registryv1alpha1.CheckWarning, state: registryv1alpha1.TargetReady, good: turnsAndTokens(),
			message: "In namespace {ns} the credential may do more than the hub needs: one kind of right. " + excess,
			items:   []registryv1alpha1.TargetCheckItem{{Name: "get, list on secrets", Result: registryv1alpha1.CheckWarning}},
			mends: func(b *brought, c registryv1alpha1.TargetCheck) {
				applies(b, c)
				b.mayNoMore()
			},
		},
		{
			sentence: "excess, administrator",
			breaks: func(b *brought) bool {
				b.alsoMay(rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
				return false
			},
			check: registryv1alpha1.CheckExcess, result: registryv1alpha1.CheckWarning, state: registryv1alpha1.TargetReady, good: turnsAndTokens(),
			message: "The credential may do everything in namespace {ns}: it's an administrator of the namespace. " + excess,
			items:   []registryv1alpha1.TargetCheckItem{{Name: "* on *.*", Result: registryv1alpha1.CheckWarning}},
		},
		{
			sentence: "excess, edit",
			breaks: func(b *brought) bool {
				b.bindsTo(rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:aggregate-to-edit"}) // what edit holds, on a cluster that aggregates roles
				return false
			},
			check: registryv1alpha1.CheckExcess, result: registryv1alpha1.CheckWarning, state: registryv1alpha1.TargetReady, good: turnsAndTokens(),
			message:   "In namespace {ns} the credential may do more than the hub needs: …",
			more:      []string{" kinds of rights. " + excess},
			meanwhile: listsWhatEditMay,
		},
		{
			sentence: "pull secrets, one is absent",
			breaks: func(b *brought) bool {
				b.grant(contract.PullSecrets, registryv1alpha1.ClusterTargetSpec{Namespace: b.name, ImagePullSecrets: []string{"mirror", "pull"}})
				must(b.target.CoreV1().Secrets(b.name).Create(b.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}}, metav1.CreateOptions{}))(b.t)
				return false
			},
			spec: func(_ *brought, spec *registryv1alpha1.ClusterTargetSpec) {
				spec.ImagePullSecrets = []string{"mirror", "pull"}
			},
			check: registryv1alpha1.CheckPullSecrets, result: registryv1alpha1.CheckFailed, state: registryv1alpha1.TargetFailed,
			message: "Namespace {ns} has no Secret pull, with which pods shall pull their images. Create it, or take it out of spec.imagePullSecrets (kubectl edit clustertarget {ns} -n {ns}).",
			items:   []registryv1alpha1.TargetCheckItem{{Name: "mirror", Result: registryv1alpha1.CheckPassed}, {Name: "pull", Result: registryv1alpha1.CheckFailed}},
			mends:   applies,
		},
		{
			sentence: "pull secrets, no right to look",
			spec:     func(_ *brought, spec *registryv1alpha1.ClusterTargetSpec) { spec.ImagePullSecrets = []string{"pull"} },
			check:    registryv1alpha1.CheckPullSecrets, result: registryv1alpha1.CheckSkipped, state: registryv1alpha1.TargetReady, good: turnsAndTokens(),
			message: "Not looked at: the credential may not get secrets pull. The right serves this item alone; pods pull with them without it.",
		},
		{
			sentence: "tokens, no right to mint",
			breaks: func(b *brought) bool {
				name := contract.Tokens.Role(registryv1alpha1.ClusterTargetSpec{}, contract.Account("", account)).Name
				if err := b.target.RbacV1().Roles(b.name).Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
					b.t.Fatal(err)
				}
				b.untilMay(false, "create", "serviceaccounts/token default")
				return false
			},
			check: registryv1alpha1.CheckTokens, result: registryv1alpha1.CheckSkipped, state: registryv1alpha1.TargetReady, good: turnsAndTokens()[:1],
			message: "The credential may not create serviceaccounts/token default. The right serves clustertargets/token alone: without it this target gives no tokens.",
			mends:   applies,
		},
	}
}

// listsWhatEditMay sees that the surplus is listed, and not the contract with it.
func listsWhatEditMay(b *brought) {
	b.t.Helper()
	var names []string
	for _, item := range check(b.t, b.first(), registryv1alpha1.CheckExcess).Items {
		names = append(names, item.Name)
	}
	for _, want := range []string{"create on serviceaccounts/token", " on pods/exec", " on secrets", " on deployments.apps"} {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, want) }) {
			b.t.Errorf("%q isn't listed: %q", want, names)
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, " on pods") && name != "deletecollection, patch, update on pods" {
			b.t.Errorf("%q is listed, and the contract has some of it", name)
		}
	}
}

// alsoMay gives the hub's account a right in a Role of its own.
func (b *brought) alsoMay(rule rbacv1.PolicyRule) {
	b.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Rules: []rbacv1.PolicyRule{rule}}
	must(b.target.RbacV1().Roles(b.name).Create(b.t.Context(), role, metav1.CreateOptions{}))(b.t)
	b.bindsTo(rbacv1.RoleRef{Kind: "Role", Name: role.Name})
}

func (b *brought) bindsTo(ref rbacv1.RoleRef) {
	b.t.Helper()
	ref.APIGroup = rbacv1.GroupName
	must(b.target.RbacV1().RoleBindings(b.name).Create(b.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "more"}, RoleRef: ref, Subjects: []rbacv1.Subject{contract.Account(b.name, account)},
	}, metav1.CreateOptions{}))(b.t)
	b.untilMay(true, "list", "secrets")
}

// mayNoMore takes back what alsoMay gave.
func (b *brought) mayNoMore() {
	b.t.Helper()
	if err := b.target.RbacV1().RoleBindings(b.name).Delete(b.t.Context(), "more", metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
	b.untilMay(false, "list", "secrets")
}

// seesNamespaces lets the hub's account get every namespace of the cluster, so
// that it sees which aren't there.
func (b *brought) seesNamespaces() {
	b.t.Helper()
	ctx, meta := b.t.Context(), metav1.ObjectMeta{Name: b.name}
	must(b.target.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{}))(b.t)
	must(b.target.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.name},
		Subjects: []rbacv1.Subject{contract.Account(b.name, account)},
	}, metav1.CreateOptions{}))(b.t)
	b.t.Cleanup(func() {
		_ = b.target.RbacV1().ClusterRoleBindings().Delete(context.Background(), b.name, metav1.DeleteOptions{})
		_ = b.target.RbacV1().ClusterRoles().Delete(context.Background(), b.name, metav1.DeleteOptions{})
	})
	// Of any namespace: that of its own it may get by a Role.
	untilAllowed(b.t, b.target, true, may(b.name, account, attributesOf("", "get", "namespaces")))
}

// forgetsNamespace deletes a namespace of the brought cluster with the test.
func (b *brought) forgetsNamespace(name string) {
	b.t.Cleanup(func() { _ = b.target.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}) })
}

// serves installs a kind on the brought cluster, without what would work on it.
func serves(t *testing.T, group, version, kind, plural string) {
	t.Helper()
	manifest := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[4]s.%[1]s
spec:
  group: %[1]s
  names: {kind: %[3]s, plural: %[4]s}
  scope: Namespaced
  versions:
  - name: %[2]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group, version, kind, plural)
	if strings.HasSuffix(group, "k8s.io") {
		manifest = strings.Replace(manifest, "spec:\n", "  annotations: {api-approved.kubernetes.io: unapproved}\nspec:\n", 1)
	}
	if err := acme().Apply(t.Context(), []byte(manifest)); err != nil {
		t.Fatal(err)
	}
	crds := must(dynamic.NewForConfig(acme().Admin.Config()))(t).
		Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	t.Cleanup(func() { _ = crds.Delete(context.Background(), plural+"."+group, metav1.DeleteOptions{}) })
	eventually(t, kind+" is served", func(ctx context.Context) error {
		return clientset(t, acme().Admin).Discovery().RESTClient().Get().AbsPath("/apis", group, version, "namespaces/default", plural).Do(ctx).Error()
	})
}

// testLocalQueue goes through all that can be said of a queue.
func testLocalQueue(t *testing.T) {
	b := bring(t)
	b.keep(b.kubeconfig(b.token))
	b.register(func(spec *registryv1alpha1.ClusterTargetSpec) { spec.Queue = "measure" })
	says := func(row *registryv1alpha1.ClusterTarget, result registryv1alpha1.CheckResult, state registryv1alpha1.TargetState, message string) registryv1alpha1.TargetCheck {
		t.Helper()
		fault{check: registryv1alpha1.CheckLocalQueue, result: result, state: state, message: message, good: turnsAndTokens()}.holds(b, row)
		return check(t, row, registryv1alpha1.CheckLocalQueue)
	}
	wouldApply(b, says(b.first(), registryv1alpha1.CheckWarning, registryv1alpha1.TargetReady,
		"Agent turns only, no measure jobs: Kueue isn't installed on the target (it serves no kueue.x-k8s.io). Ask the cluster's administrator for it, or leave out spec.queue."))

	serves(t, "kueue.x-k8s.io", "v1beta1", "LocalQueue", "localqueues")
	applies(b, says(b.probed(), registryv1alpha1.CheckSkipped, registryv1alpha1.TargetReady,
		"Not looked at, so the target runs no measure jobs: the credential may not get localqueues.kueue.x-k8s.io measure. The right serves this item alone."))
	b.untilMay(true, "get", "localqueues.kueue.x-k8s.io measure")
	applies(b, says(b.probed(), registryv1alpha1.CheckFailed, registryv1alpha1.TargetFailed,
		"Namespace {ns} has no LocalQueue measure. Correct spec.queue (kubectl edit clustertarget {ns} -n {ns}), or create it: the command that the probe prints lists those that there are."))

	if err := acme().Apply(t.Context(), fmt.Appendf(nil, "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: measure, namespace: %s}\n", b.name)); err != nil {
		t.Fatal(err)
	}
	row := b.becomesReady(registryv1alpha1.CheckLocalQueue, "")
	fault{
		check: registryv1alpha1.CheckLocalQueue, result: registryv1alpha1.CheckPassed, state: registryv1alpha1.TargetReady,
		message: "LocalQueue measure exists.", good: append(turnsAndTokens(), registryv1alpha1.CapabilityMeasure),
	}.holds(b, row)
}

// testSandbox goes through all that can be said of the sandbox driver Kubernetes.
func testSandbox(t *testing.T) {
	b := bring(t)
	b.keep(b.kubeconfig(b.token))
	b.register(func(spec *registryv1alpha1.ClusterTargetSpec) {
		spec.SandboxDriver = registryv1alpha1.SandboxKubernetes
	})
	says := fault{check: registryv1alpha1.CheckSandbox, result: registryv1alpha1.CheckWarning, state: registryv1alpha1.TargetReady, good: turnsAndTokens()}
	says.message = "Agent turns only, with nested Podman: the target serves no sandboxes.agents.x-k8s.io. " +
		"Ask the cluster's administrator for the operator of the Sandbox resource, or set spec.sandboxDriver to Podman."
	row := b.first()
	says.holds(b, row)
	wouldApply(b, check(t, row, registryv1alpha1.CheckSandbox))

	serves(t, contract.GroupSandbox, "v1alpha1", "Sandbox", "sandboxes")
	row = b.probed()
	says.message = "Agent turns only, with nested Podman: the credential may not " +
		"create sandboxes.agents.x-k8s.io, get sandboxes.agents.x-k8s.io, list sandboxes.agents.x-k8s.io, watch sandboxes.agents.x-k8s.io, delete sandboxes.agents.x-k8s.io. " +
		"The rights serve the sandbox driver Kubernetes alone."
	says.holds(b, row)

	applies(b, check(t, row, registryv1alpha1.CheckSandbox))
	says.result, says.message = registryv1alpha1.CheckPassed, "The target serves sandboxes.agents.x-k8s.io, and the credential may use them."
	says.good = append(turnsAndTokens(), registryv1alpha1.CapabilityKubernetesSandbox)
	says.holds(b, b.becomesReady(registryv1alpha1.CheckSandbox, ""))
}
