package registration

import (
	"fmt"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// bounds are the policy, enforced by the cell's own API server, that holds for
// every token that is asked for by way of the hub, also by a hub that was
// taken over. The hub has no access to the policy.
func (r Registration) bounds() []runtime.Object {
	return policy(mintName, admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: requests("serviceaccounts/token", admissionv1.Create),
		MatchConditions:  byWayOfTheHub(),
		Validations:      r.validations(),
	})
}

// policy is a policy that fails closed, and its binding.
func policy(name string, spec admissionv1.ValidatingAdmissionPolicySpec) []runtime.Object {
	spec.FailurePolicy = ptr.To(admissionv1.Fail)
	return []runtime.Object{
		&admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels()},
			Spec:       spec,
		},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels()},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        name,
				ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny, admissionv1.Audit},
			},
		},
	}
}

// byWayOfTheHub matches everyone who comes by the hub's issuer, not only the one
// user with a Role: a later, broader trust stays bounded.
func byWayOfTheHub() []admissionv1.MatchCondition {
	return []admissionv1.MatchCondition{{
		Name:       "by-way-of-the-hub",
		Expression: "request.userInfo.username.startsWith(" + strconv.Quote(UserPrefix) + ")",
	}}
}

// requests matches operations on a resource of the core group.
func requests(resource string, operations ...admissionv1.OperationType) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		MatchPolicy: ptr.To(admissionv1.Equivalent),
		ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: operations,
				Rule: admissionv1.Rule{
					APIGroups:   []string{""},
					APIVersions: []string{"v1"},
					Resources:   []string{resource},
				},
			},
		}},
	}
}

func (r Registration) validations() []admissionv1.Validation {
	var accounts []string
	for _, sa := range r.cell.Mint {
		accounts = append(accounts, sa.String())
	}
	maxSeconds := int64(r.cell.MaxTTL.Seconds())
	// By the time that a policy sees a request the API server has put in what it
	// left out: a life of an hour, and its own audiences, which therefore have to
	// be in the list.
	audiences := append(append([]string{}, r.cell.APIAudiences...), r.cell.MintAudiences...)

	return append([]admissionv1.Validation{
		forbid(
			fmt.Sprintf("(request.namespace + '/' + request.name) in %s", celList(accounts)),
			"'the hub may not ask tokens for ' + request.namespace + '/' + request.name + ': register the cell with it'"),
		forbid(
			fmt.Sprintf("object.spec.expirationSeconds <= %d", maxSeconds),
			fmt.Sprintf("'a token for the hub may live %d seconds at most'", maxSeconds)),
		forbid(
			fmt.Sprintf("object.spec.audiences.all(a, a in %s)", celList(audiences)),
			"'a token for the hub may not have the audiences ' + object.spec.audiences.join(', ') + ': "+
				"register the cell with the --api-audiences of its API server and with those that policies name'"),
	}, r.bindingValidations()...)
}

// bindingValidations say what a token may be bound to: nothing, and in a
// revocable namespace, where each must end with its Secret, that alone.
func (r Registration) bindingValidations() []admissionv1.Validation {
	const (
		ref = "object.spec.boundObjectRef"
		// The API server shows policies the absent field as a null.
		unbound = "!has(" + ref + ") || " + ref + " == null"
	)
	// A bound token speaks for the pod or node that it's bound to, and one of
	// 3607 seconds that is bound to a pod is lengthened to a year by an API
	// server with --service-account-extend-token-expiration.
	const message = "'a token for the hub may not be bound to an object'"
	if len(r.cell.Revocable) == 0 {
		return []admissionv1.Validation{forbid(unbound, message)}
	}
	revocable := "request.namespace in " + celList(r.cell.Revocable)
	return []admissionv1.Validation{
		forbid(revocable+" || "+unbound, message),
		forbid("!("+revocable+") || (has("+ref+") && "+ref+" != null"+
			" && has("+ref+".apiVersion) && "+ref+".apiVersion == 'v1'"+
			" && has("+ref+".kind) && "+ref+".kind == 'Secret'"+
			" && has("+ref+".name) && "+ref+".name.matches('"+secretName+"'))",
			"'a token for the hub in ' + request.namespace + ' must be bound to the Secret of a revocable credential'"),
	}
}

func forbid(unless, message string) admissionv1.Validation {
	return admissionv1.Validation{
		Expression:        unless,
		MessageExpression: message,
		Reason:            ptr.To(metav1.StatusReasonForbidden),
	}
}

// celList is a CEL list of string literals. What Go's quoting escapes, CEL
// reads as the same.
func celList(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
