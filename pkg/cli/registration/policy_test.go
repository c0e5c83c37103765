package registration_test

import (
	"cmp"
	"encoding/json"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"cellcast.io/cellcast/pkg/cli/registration"
)

// request is what an API server shows to a policy.
type request struct {
	operation       string
	user            string // the hub, where it's empty
	namespace, name string
	// object and oldObject are of API types, or nil.
	object, oldObject any
}

// fullPolicy is a policy of the cell with every fact given.
func fullPolicy(t *testing.T, name string) *admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	r, err := registration.New(full(t))
	if err != nil {
		t.Fatal(err)
	}
	return policyOf(t, r, name)
}

func policyOf(t *testing.T, r registration.Registration, name string) *admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	for _, object := range r.OnCell() {
		if policy, ok := object.(*admissionv1.ValidatingAdmissionPolicy); ok && policy.Name == name {
			return policy
		}
	}
	t.Fatalf("there is no policy %s", name)
	return nil
}

// admit evaluates the policy as an API server does: every match condition, then
// each validation, whose message is returned if it fails.
func admit(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy, r request) string {
	t.Helper()
	variables := map[string]any{
		"request": map[string]any{
			"operation": r.operation,
			"namespace": r.namespace,
			"name":      r.name,
			"userInfo":  map[string]any{"username": cmp.Or(r.user, hubUser)},
		},
		"object":    content(t, r.object),
		"oldObject": content(t, r.oldObject),
	}
	for _, condition := range policy.Spec.MatchConditions {
		if evaluate(t, condition.Expression, variables) != true {
			return ""
		}
	}
	for _, validation := range policy.Spec.Validations {
		if evaluate(t, validation.Expression, variables) != true {
			return evaluate(t, validation.MessageExpression, variables).(string)
		}
	}
	return ""
}

// content is an object as its JSON has it.
func content(t *testing.T, object any) any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func evaluate(t *testing.T, expression string, variables map[string]any) any {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("request", cel.DynType), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
		ext.Strings(), cel.CrossTypeNumericComparisons(true))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.Eval(variables)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value.Value()
}
