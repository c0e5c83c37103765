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
	return []runtime.Object{
		&admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: mintName, Labels: labels()},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy:    ptr.To(admissionv1.Fail),
				MatchConstraints: tokenRequests(),
				// Everyone who comes by the hub's issuer, not only the one user
				// with a Role: a later, broader trust stays bounded.
				MatchConditions: []admissionv1.MatchCondition{{
					Name:       "by-way-of-the-hub",
					Expression: "request.userInfo.username.startsWith(" + strconv.Quote(UserPrefix) + ")",
				}},
				Validations: r.validations(),
			},
		},
		&admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: mintName, Labels: labels()},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        mintName,
				ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny, admissionv1.Audit},
			},
		},
	}
}

func tokenRequests() *admissionv1.MatchResources {
	return &admissionv1.MatchResources{
		MatchPolicy: ptr.To(admissionv1.Equivalent),
		ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule: admissionv1.Rule{
					APIGroups:   []string{""},
					APIVersions: []string{"v1"},
					Resources:   []string{"serviceaccounts/token"},
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

	return []admissionv1.Validation{
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
		// A bound token speaks for the pod or node that it's bound to, and one
		// of 3607 seconds that is bound to a pod is lengthened to a year by an
		// API server with --service-account-extend-token-expiration.
		forbid(
			// The API server shows policies the absent field as a null.
			"!has(object.spec.boundObjectRef) || object.spec.boundObjectRef == null",
			"'a token for the hub may not be bound to an object'"),
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
