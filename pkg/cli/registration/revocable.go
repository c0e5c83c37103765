package registration

import (
	"fmt"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"cellcast.io/cellcast/pkg/revocation"
)

// A revocable credential is a token that is bound to an empty Secret. The hub
// makes the Secret and may delete it, the agent deletes it when its time is
// over. A Secret can be more than that: it can hold what nobody else should
// read, and one of type kubernetes.io/service-account-token is a credential
// itself. So neither the hub's right to create Secrets nor the agent's to list
// them is given without the policies that make those Secrets worth nothing.

const (
	// hubSecretsName is the name of what bounds and permits the hub's dealings
	// with Secrets.
	hubSecretsName = "cellcast-hub-secrets" //nolint:gosec // G101: a name
	// revocableName is the name of what bounds all Secrets of a revocable
	// namespace: the policy on each, and the quota on their number.
	revocableName = "cellcast-revocable-secrets"
	// agentSecretsName is the name of what permits the agent's.
	agentSecretsName = "cellcast-agent-secrets" //nolint:gosec // G101: a name
)

// secretName is the form of the names that revocation.SecretName gives, as a
// regular expression.
const secretName = "^cellcast-[0-9a-f]{64}$" //nolint:gosec // G101: the form of a name

// DefaultRevocableQuota is how many Secrets a revocable namespace holds, and so
// how many credentials are alive there, where the cell doesn't say otherwise. It
// leaves room above what the cell's agent takes on, for the hub learns only by
// the next report that it's too many.
const DefaultRevocableQuota = 5000

// maxRevocableQuota is the most Secrets that a quota lets a namespace hold: what
// an agent can list and keep.
const maxRevocableQuota = 100_000

// secretBounds are the policies on Secrets. That on the hub is there without
// any revocable namespace too, so that a cell which is registered anew without
// those that it had takes the hub's access away.
func (r Registration) secretBounds() []runtime.Object {
	objects := policy(hubSecretsName, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: requests("secrets", admissionv1.Create, admissionv1.Update, admissionv1.Delete),
		MatchConditions:  byWayOfTheHub(),
		Validations:      r.hubSecretValidations(),
	})
	if len(r.cell.Revocable) == 0 {
		return objects
	}
	everywhere := requests("secrets", admissionv1.Create, admissionv1.Update)
	everywhere.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		// The API server sees to it that each namespace has this label.
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: r.cell.Revocable,
	}}}
	return append(objects, policy(revocableName, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: everywhere,
		Validations:      r.revocableValidations(),
	})...)
}

// secretQuotas bound how many Secrets there are in each revocable namespace,
// for the policies bound only what each is: nobody who may place workloads, and
// no hub that was taken over, fills the cell's store or the agent's memory.
func (r Registration) secretQuotas() []runtime.Object {
	var objects []runtime.Object
	for _, ns := range r.cell.Revocable {
		objects = append(objects, &corev1.ResourceQuota{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: revocableName, Labels: labels()},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
				"count/secrets": *resource.NewQuantity(r.cell.RevocableQuota, resource.DecimalSI),
			}},
		})
	}
	return objects
}

// hubSecretValidations keep whoever comes by way of the hub, whatever RBAC says,
// to the Secrets of revocable credentials.
func (r Registration) hubSecretValidations() []admissionv1.Validation {
	return []admissionv1.Validation{
		forbid(
			"request.namespace in "+celList(r.cell.Revocable),
			"'the hub may not touch a Secret in ' + request.namespace + ': register the cell with it as revocable'"),
		forbid(
			"request.operation != 'DELETE' || (has(oldObject.metadata.labels) && "+strconv.Quote(revocation.LabelSeconds)+" in oldObject.metadata.labels)",
			"'the hub may delete no Secret without the label "+revocation.LabelSeconds+"'"),
	}
}

// revocableValidations hold for everyone who creates or changes a Secret in a
// revocable namespace, administrators and controllers too. A Secret that outlives
// every token would only take up room.
func (r Registration) revocableValidations() []admissionv1.Validation {
	const label = "'" + revocation.LabelSeconds + "'"
	least, most := int64(revocation.MinTTL/time.Second), int64(min(r.cell.MaxTTL, revocation.MaxTTL)/time.Second)
	only := func(unless, what string) admissionv1.Validation {
		return forbid(unless, "'a Secret in ' + request.namespace + ' must "+what+": the namespace is for revocable credentials alone'")
	}
	return []admissionv1.Validation{
		only("object.type == 'Opaque'", "be of type Opaque"),
		only("(!has(object.data) || size(object.data) == 0) && (!has(object.stringData) || size(object.stringData) == 0) && !has(object.immutable)",
			"hold nothing"),
		only(fmt.Sprintf("object.metadata.name.matches('%s')", secretName),
			"have a name of cellcast- and 64 hexadecimal digits"),
		// Whoever set a finalizer could keep a token alive.
		only("!has(object.metadata.annotations) && !has(object.metadata.finalizers) && !has(object.metadata.ownerReferences)",
			"have no annotation, finalizer or owner"),
		// Without string() CEL finds no int() for what it looks up by a key.
		only(fmt.Sprintf("has(object.metadata.labels) && size(object.metadata.labels) == 1 && %[1]s in object.metadata.labels"+
			" && object.metadata.labels[%[1]s].matches('^[1-9][0-9]{1,4}$')"+
			" && int(string(object.metadata.labels[%[1]s])) >= %[2]d && int(string(object.metadata.labels[%[1]s])) <= %[3]d", label, least, most),
			fmt.Sprintf("have the label %s alone, of %d to %d seconds", revocation.LabelSeconds, least, most)),
		only(fmt.Sprintf("request.operation != 'UPDATE' || (has(oldObject.metadata.labels) && %[1]s in oldObject.metadata.labels"+
			" && oldObject.metadata.labels[%[1]s] == object.metadata.labels[%[1]s])", label),
			"keep the time that it was created with"),
	}
}

// secretAccess lets the hub create and delete the Secrets, whose names only the
// policies can bound, and the agent find and delete them. The hub can't
// read them.
func (r Registration) secretAccess(hub, agent rbacv1.Subject) []runtime.Object {
	var objects []runtime.Object
	for _, ns := range r.cell.Revocable {
		objects = append(objects,
			secretRole(ns, hubSecretsName, "create", "delete"), roleBinding(ns, hubSecretsName, hub),
			secretRole(ns, agentSecretsName, "list", "watch", "delete"), roleBinding(ns, agentSecretsName, agent))
	}
	return objects
}

func secretRole(ns, name string, verbs ...string) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labels()},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs}},
	}
}
