package registration_test

import (
	"cmp"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/ptr"
)

const hubUser = "cellcast-hub:system:serviceaccount:cellcast-system:cellcast-hub"

const mustBeBound = "a token for the hub in payments-ci must be bound to the Secret of a revocable credential"

// bound is a request for a token that is bound to an object.
func bound(apiVersion, kind, name string) authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{
		Audiences: []string{"https://kubernetes.default.svc"}, ExpirationSeconds: ptr.To[int64](600),
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: apiVersion, Kind: kind, Name: name},
	}
}

// The requests are as an API server shows them to a policy: with its own
// audiences and a life of an hour where the request named none, and with a null
// boundObjectRef.
func TestBoundsOfTokenRequests(t *testing.T) {
	apiServer := []string{"https://kubernetes.default.svc"}
	for name, test := range map[string]struct {
		user, namespace, account string
		spec                     authenticationv1.TokenRequestSpec
		want                     string // the message, or empty where it's allowed
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
		"forbids a token of an ordinary namespace that is bound to a Secret": {
			account: "deployer",
			spec:    bound("v1", "Secret", secretName),
			want:    "a token for the hub may not be bound to an object"},
		"allows a token that is bound to the Secret of a revocable credential": {
			namespace: "payments-ci", account: "deployer",
			spec: bound("v1", "Secret", secretName)},
		"forbids a token of a revocable namespace that would outlive its revocation": {
			namespace: "payments-ci", account: "deployer",
			spec: authenticationv1.TokenRequestSpec{Audiences: apiServer, ExpirationSeconds: ptr.To[int64](600)},
			want: mustBeBound},
		"forbids a token of a revocable namespace that is bound to another Secret": {
			namespace: "payments-ci", account: "deployer",
			spec: bound("v1", "Secret", "cellcast-registry"), want: mustBeBound},
		"forbids a token of a revocable namespace that is bound to a pod": {
			namespace: "payments-ci", account: "deployer",
			spec: bound("v1", "Pod", secretName), want: mustBeBound},
		"forbids a token of a revocable namespace that is bound to a Secret of another group": {
			namespace: "payments-ci", account: "deployer",
			spec: bound("acme.example.com/v1", "Secret", secretName), want: mustBeBound},
		"forbids a token of a revocable namespace that is bound to nothing in particular": {
			namespace: "payments-ci", account: "deployer",
			spec: bound("", "", ""), want: mustBeBound},
		"forbids another ServiceAccount of a revocable namespace": {
			namespace: "payments-ci", account: "other",
			spec: bound("v1", "Secret", secretName),
			want: "the hub may not ask tokens for payments-ci/other: register the cell with it"},
	} {
		t.Run(name, func(t *testing.T) {
			got := admit(t, fullPolicy(t, "cellcast-hub-mint"), request{
				operation: "CREATE", user: test.user, namespace: cmp.Or(test.namespace, "payments"), name: test.account,
				object: authenticationv1.TokenRequest{Spec: test.spec},
			})
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
