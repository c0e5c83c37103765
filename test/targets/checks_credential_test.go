package targets

import (
	"context"
	"errors"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/secret"
	"cellcast.io/cellcast/test/world"
)

// credentialFaults are of the items up to who the hub is there.
func credentialFaults() []fault {
	const failed = registryv1alpha1.CheckFailed
	rekey := func(b *brought, _ registryv1alpha1.TargetCheck) { b.rekeys(b.kubeconfig(b.token)) }
	return []fault{
		{
			sentence: "credential, no role for the hub",
			breaks: func(b *brought) bool {
				b.keep(b.kubeconfig(b.token))
				if err := b.core.RbacV1().Roles(b.name).Delete(b.t.Context(), b.name+"-kubeconfig", metav1.DeleteOptions{}); err != nil {
					b.t.Fatal(err)
				}
				b.untilHubMayRead(false, b.name+"-kubeconfig")
				return true
			},
			check: registryv1alpha1.CheckCredential, result: failed, state: registryv1alpha1.TargetCredentialUnavailable,
			message: "Secret {ns}/{ns}-kubeconfig may not be read by the hub. Let its ServiceAccount get this one Secret: " +
				"kubectl create role cellcast-{ns}-kubeconfig -n {ns} --verb=get --resource=secrets --resource-name={ns}-kubeconfig && " +
				"kubectl create rolebinding cellcast-{ns}-kubeconfig -n {ns} --role=cellcast-{ns}-kubeconfig --serviceaccount=cellcast-system:cellcast-hub",
			mends: adviceAtTheHub,
		},
		{
			sentence: "credential, no secret",
			breaks: func(b *brought) bool {
				b.keep(b.kubeconfig(b.token))
				if err := b.core.CoreV1().Secrets(b.name).Delete(b.t.Context(), b.name+"-kubeconfig", metav1.DeleteOptions{}); err != nil {
					b.t.Fatal(err)
				}
				return true
			},
			check: registryv1alpha1.CheckCredential, result: failed, state: registryv1alpha1.TargetCredentialUnavailable,
			message: "Secret {ns}/{ns}-kubeconfig doesn't exist. Create it from a kubeconfig of the closed form: " +
				"kubectl create secret generic {ns}-kubeconfig -n {ns} --type=cellcast.io/kubeconfig --from-file=kubeconfig=FILE",
			mends: adviceAtTheHub,
		},
		{
			sentence: "reachable, a closed port",
			breaks: func(b *brought) bool {
				b.keep(must(kubeconfig.New("https://"+closedPort(b.t, "127.0.0.1"), acme().CABundle, secret.New(b.token)))(b.t).Encode())
				return true
			},
			check: registryv1alpha1.CheckReachable, result: failed, state: registryv1alpha1.TargetUnreachable,
			message: "The hub can't connect to the target's API: check that the server in the kubeconfig can be reached from the hub's network, " +
				"that its name resolves there, that certificate-authority-data has the CA that signed its certificate, " +
				"and that the hub's operator permits its address and its port; the operator finds the cause in the hub's log under run {run}.",
			mends: rekey,
		},
		{
			sentence: "reachable, another ca",
			breaks: func(b *brought) bool {
				b.keep(must(kubeconfig.New(acme().URL, hub.Cell("prod-eu").CABundle, secret.New(b.token)))(b.t).Encode())
				return true
			},
			check: registryv1alpha1.CheckReachable, result: failed, state: registryv1alpha1.TargetUnreachable,
			message: "The hub can't connect to the target's API: check that the server in the kubeconfig can be reached from the hub's network, …",
			mends:   rekey,
		},
		{
			sentence: "authenticated, a token that ended",
			breaks: func(b *brought) bool {
				other := must(acme().Token(b.t.Context(), b.name, account, time.Hour))(b.t)
				if err := b.target.CoreV1().ServiceAccounts(b.name).Delete(b.t.Context(), account, metav1.DeleteOptions{}); err != nil {
					b.t.Fatal(err)
				}
				// By another token than the one that is probed: a cluster remembers for ten
				// seconds what it has accepted.
				eventually(b.t, "the target knows that the account is gone", func(ctx context.Context) error {
					review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: other}}
					review, err := b.target.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
					if err == nil && review.Status.Authenticated {
						err = errors.New("it accepts its token")
					}
					return err
				})
				return false
			},
			check: registryv1alpha1.CheckAuthenticated, result: failed, state: registryv1alpha1.TargetCredentialRejected,
			message: "The target's API doesn't accept the token in the kubeconfig (401), also as it was read anew: " +
				"it was deleted, has ended, or is another cluster's. Register again with a new token: with a kubeconfig of yours that works there, " +
				"the command that the probe prints deletes Secret cellcast-{ns}-token, should there be one, and makes another.",
			mends: func(b *brought, c registryv1alpha1.TargetCheck) {
				want := "kubectl --kubeconfig kubeconfig --namespace " + b.name + " delete secret cellcast-" + b.name + "-token --ignore-not-found && " +
					"cellcast target register " + b.name + " -f kubeconfig --namespace " + b.name + " -n " + b.name + " --create-credential"
				if c.Remedy != want {
					b.t.Errorf("the remedy is %q, want %q", c.Remedy, want)
				}
				b.rekeys(b.kubeconfig(b.reaccounts()))
			},
		},
		{
			sentence: "authenticated, a wrong token in a secret made by hand",
			breaks: func(b *brought) bool {
				b.token += "x"
				b.types(strings.NewReplacer("{ns}", b.name, "{hub}", world.Namespace+":"+world.HubServiceAccount).Replace(
					"kubectl create secret generic mine -n {ns} --type=cellcast.io/kubeconfig --from-file=kubeconfig=FILE && " +
						"kubectl create role mine -n {ns} --verb=get --resource=secrets --resource-name=mine && " +
						"kubectl create rolebinding mine -n {ns} --role=mine --serviceaccount={hub}"))
				b.untilHubMayRead(true, "mine")
				return true
			},
			spec:  func(_ *brought, spec *registryv1alpha1.ClusterTargetSpec) { spec.CredentialRef.SecretRef.Name = "mine" },
			check: registryv1alpha1.CheckAuthenticated, result: failed, state: registryv1alpha1.TargetCredentialRejected,
			message: "The target's API doesn't accept the token in the kubeconfig (401), also as it was read anew: " +
				"it was deleted, has ended, or is another cluster's. " +
				"Put a kubeconfig of the closed form with a token that works into Secret mine: the command that the probe prints does that.",
			mends: func(b *brought, c registryv1alpha1.TargetCheck) {
				b.token = strings.TrimSuffix(b.token, "x")
				applies(b, c)
			},
		},
	}
}

// adviceAtTheHub runs the command that a message ends with, as the owner does.
func adviceAtTheHub(b *brought, c registryv1alpha1.TargetCheck) {
	_, command, _ := strings.Cut(c.Message, ": ")
	b.types(command)
}

// namespaceFaults are of the namespace.
func namespaceFaults() []fault {
	absent := func(b *brought) string { return b.name + "-absent" }
	return []fault{
		{
			sentence: "namespace, absent",
			breaks: func(b *brought) bool {
				b.seesNamespaces()
				return false
			},
			spec:  func(b *brought, spec *registryv1alpha1.ClusterTargetSpec) { spec.Namespace = absent(b) },
			check: registryv1alpha1.CheckNamespace, result: registryv1alpha1.CheckFailed, state: registryv1alpha1.TargetFailed,
			message: "The target has no namespace {ns}-absent. Create it, or correct spec.namespace (kubectl edit clustertarget {ns} -n {ns}).",
			mends: func(b *brought, c registryv1alpha1.TargetCheck) {
				b.forgetsNamespace(absent(b))
				applies(b, c)
				row := b.probed()
				if got := check(b.t, row, registryv1alpha1.CheckNamespace); got.Result != registryv1alpha1.CheckPassed {
					b.t.Fatalf("created, it's %s: %s", got.Result, got.Message)
				}
				applies(b, check(b.t, row, registryv1alpha1.CheckPermissions)) // it's there, and the hub has no Role in it
			},
		},
		{
			sentence: "namespace, no right to get it",
			breaks: func(b *brought) bool {
				b.denies("get", "namespaces")
				return false
			},
			check: registryv1alpha1.CheckNamespace, result: registryv1alpha1.CheckFailed, state: registryv1alpha1.TargetFailed,
			message: "The credential may not get namespace {ns}, or there is none: to who may not look, an API server says the same of both. If it's there, a Role in it can grant that (get on namespaces): " +
				"on the target, apply the one that the probe prints.",
			mends: applies,
		},
	}
}
