package targets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/test/world"
)

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
			return errors.Join(errors.New("it's another answer"), err)
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

// What is done to pods so that they don't start.
const (
	nowhere     = `[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"cellcast.io/nowhere": "true"}}]`
	absentImage = `[JSONPatch{op: "replace", path: "/spec/containers/0/image", value: "cellcast.io/absent:dev"}]`
)

// changesPods has an administrator of the cluster change pods.
func changesPods(patch string) func(*brought) bool {
	return func(b *brought) bool {
		b.t.Helper()
		b.administers("Mutating", "  reinvocationPolicy: Never\n  mutations:\n  - patchType: JSONPatch\n    jsonPatch:\n      expression: >-\n        "+patch, "")
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
	patiently(b.t, 2*time.Minute, "pods in "+b.name+" "+what, func(ctx context.Context) error {
		return as(b.target.CoreV1().Pods(b.name).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "tried"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "canary", Image: world.CanaryImage, Resources: corev1.ResourceRequirements{Requests: little, Limits: little},
			}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	})
}
