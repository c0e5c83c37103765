package registration_test

import (
	"encoding/json"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"

	"cellcast.io/cellcast/pkg/cli/registration"
)

const hubUser = "cellcast-hub:system:serviceaccount:cellcast-system:cellcast-hub"

// The requests are as an API server shows them to a policy: with its own
// audiences and a life of an hour where the request named none, and with a null
// boundObjectRef.
func TestBoundsOfTokenRequests(t *testing.T) {
	apiServer := []string{"https://kubernetes.default.svc"}
	for name, test := range map[string]struct {
		user, account string
		spec          authenticationv1.TokenRequestSpec
		want          string // the message, or empty where it's allowed
	}{
		"allows a token for the API server, as long as permitted": {
			account: "deployer",
			spec:    authenticationv1.TokenRequestSpec{Audiences: apiServer, ExpirationSeconds: ptr.To[int64](1800)}},
		"allows another audience that is named": {
			account: "deployer",
			spec:    authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}, ExpirationSeconds: ptr.To[int64](600)}},
		"leaves users of the cell's own alone": {
			user: "admin", account: "other",
			spec: authenticationv1.TokenRequestSpec{Audiences: []string{"else"}, ExpirationSeconds: ptr.To[int64](999999)}},
		"bounds every user of the hub's issuer": {
			user: "cellcast-hub:someone", account: "other",
			spec: authenticationv1.TokenRequestSpec{Audiences: apiServer, ExpirationSeconds: ptr.To[int64](600)},
			want: "the hub may not ask tokens for payments/other: register the cell with it"},
		"forbids a second more": {
			account: "deployer",
			spec:    authenticationv1.TokenRequestSpec{Audiences: apiServer, ExpirationSeconds: ptr.To[int64](1801)},
			want:    "a token for the hub may live 1800 seconds at most"},
		"forbids the API server's default where it's longer": {
			account: "deployer",
			spec:    authenticationv1.TokenRequestSpec{Audiences: apiServer, ExpirationSeconds: ptr.To[int64](3600)},
			want:    "a token for the hub may live 1800 seconds at most"},
		"forbids an audience beside a permitted one": {
			account: "deployer",
			spec:    authenticationv1.TokenRequestSpec{Audiences: []string{"vault", "else"}, ExpirationSeconds: ptr.To[int64](600)},
			want: "a token for the hub may not have the audiences vault, else: register the cell with the --api-audiences " +
				"of its API server and with those that policies name"},
		"forbids another ServiceAccount": {
			account: "other",
			spec:    authenticationv1.TokenRequestSpec{Audiences: apiServer, ExpirationSeconds: ptr.To[int64](600)},
			want:    "the hub may not ask tokens for payments/other: register the cell with it"},
		"forbids a token that is bound to a pod": {
			account: "deployer",
			spec: authenticationv1.TokenRequestSpec{Audiences: apiServer, ExpirationSeconds: ptr.To[int64](600),
				BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "api"}},
			want: "a token for the hub may not be bound to an object"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.user == "" {
				test.user = hubUser
			}
			if got := admit(t, boundsOf(t), test.user, test.account, test.spec); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func boundsOf(t *testing.T) *admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	r, err := registration.New(full(t))
	if err != nil {
		t.Fatal(err)
	}
	return r.OnCell()[0].(*admissionv1.ValidatingAdmissionPolicy)
}

// admit evaluates the policy as an API server does: every match condition, then
// each validation, whose message is returned if it fails.
func admit(t *testing.T, policy *admissionv1.ValidatingAdmissionPolicy, user, account string, spec authenticationv1.TokenRequestSpec) string {
	t.Helper()
	request := map[string]any{
		"namespace": "payments",
		"name":      account,
		"userInfo":  map[string]any{"username": user},
	}
	object := map[string]any{}
	data, err := json.Marshal(authenticationv1.TokenRequest{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	for _, condition := range policy.Spec.MatchConditions {
		if evaluate(t, condition.Expression, request, object) != true {
			return ""
		}
	}
	for _, validation := range policy.Spec.Validations {
		if evaluate(t, validation.Expression, request, object) != true {
			return evaluate(t, validation.MessageExpression, request, object).(string)
		}
	}
	return ""
}

func evaluate(t *testing.T, expression string, request, object map[string]any) any {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("request", cel.DynType), cel.Variable("object", cel.DynType), ext.Strings(), cel.CrossTypeNumericComparisons(true))
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
	value, _, err := program.Eval(map[string]any{"request": request, "object": object})
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value.Value()
}
