package probe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/cell/failure"
	"cellcast.io/cellcast/pkg/kubeconfig"
)

const (
	onTeam        = "kubectl --kubeconfig kubeconfig --namespace team "
	ready         = "kubectl --kubeconfig kubeconfig get --raw /readyz"
	applied       = "kubectl --kubeconfig kubeconfig apply --server-side --force-conflicts -f - <<'EOF'\napiVersion: rbac.authorization.k8s.io/v1\n"
	bindKeys      = "kubectl --kubeconfig kubeconfig create clusterrolebinding cellcast-hub-issuer-discovery"
	registerAgain = "cellcast target register lab -f kubeconfig --namespace team -n payments"
	another       = onTeam + "delete secret cellcast-lab-token --ignore-not-found && " + registerAgain
	editRow       = "kubectl edit clustertarget lab -n payments"
	replaceMine   = "kubectl create secret generic mine -n payments --type=cellcast.io/kubeconfig --from-file=kubeconfig=FILE --dry-run=client -o yaml | kubectl replace -f -"
	theCause      = "The hub's operator finds the cause in its log under run r-1."
	coarse        = "The hub can't connect to the target's API: check that the server in the kubeconfig can be reached from the hub's network, " +
		"that its name resolves there, that certificate-authority-data has the CA that signed its certificate, " +
		"and that the hub's operator permits its address and its port; the operator finds the cause in the hub's log under run r-1."
	tokenEnded = "The target's API doesn't accept the token in the kubeconfig (401), also as it was read anew: " +
		"it was deleted, has ended, or is another cluster's. "
	rejected = tokenEnded + "Register again with a new token: with a kubeconfig of yours that works there, " +
		"the command that the probe prints deletes Secret cellcast-lab-token, should there be one, and makes another."
	noAPI = "What answers at the server in the kubeconfig doesn't serve the Kubernetes API now: check that the command that the probe prints says ok, " +
		"and that the server is the API itself and not a page or a proxy before it. " + theCause
	keysForbidden = "The credential may not read the target's signing keys (/openid/v1/jwks and /.well-known/openid-configuration), by which pods prove who they are. " +
		"By default every ServiceAccount may: ask the cluster's administrator to bind ClusterRole system:service-account-issuer-discovery"
	noKeys = "What the target publishes as its signing keys isn't a key set that the hub takes: JSON by RFC 7517 of at most 1 MiB and 64 keys, " +
		"with an RSA key of 2048 to 8192 bits or an EC key. " + theCause
	noIssuer = "The target's /.well-known/openid-configuration names no issuer that the hub takes: it must be JSON with an issuer of at most 512 printable characters. " + theCause
)

// advice is an error of a source of credentials.
type advice string

func (a advice) Error() string  { return "secrets \"lab\" is forbidden" }
func (a advice) Advice() string { return string(a) }

func opens(err error) func(*trial) {
	return func(tr *trial) { tr.open = func(context.Context) (API, error) { return nil, err } }
}

func ends(method string, err error) func(*trial) {
	return func(tr *trial) { tr.target.fails[method] = err }
}

func without(rights ...string) func(*trial) {
	return func(tr *trial) {
		for _, right := range rights {
			delete(tr.target.rights, right)
		}
	}
}

func publishes(path, document string) func(*trial) {
	return func(tr *trial) { tr.target.documents[path] = document }
}

// keptIn is where the row says that the kubeconfig is.
func (tr *trial) keptIn(secret string) {
	tr.spec.Target.CredentialRef.SecretRef = &registryv1alpha1.TargetSecretRef{Name: secret}
}

// Each item, failing or not passing alone: what it says, and what to do.
func TestItemAlone(t *testing.T) {
	closed := &kubeconfig.Error{Rule: kubeconfig.Exec, Field: "users[0].user.exec", Line: 12, Message: "exec names a program"}
	tests := map[string]struct {
		when    func(*trial)
		item    registryv1alpha1.TargetCheckName
		result  registryv1alpha1.CheckResult // Failed where empty
		message string
		remedy  string // what it begins with
		state   registryv1alpha1.TargetState
		ends    bool // that no later item is looked at
	}{
		"Credential: the kubeconfig isn't of the closed form": {
			when: opens(fmt.Errorf("reading: %w", closed)), item: registryv1alpha1.CheckCredential, ends: true,
			message: "The kubeconfig isn't taken: line 12, users[0].user.exec: exec names a program", remedy: registerAgain},
		"Credential: the kubeconfig in Vault isn't of the closed form": {
			when: func(tr *trial) {
				opens(closed)(tr)
				tr.spec.Target.CredentialRef = registryv1alpha1.TargetCredentialRef{VaultRef: &registryv1alpha1.TargetVaultRef{Path: "users/ann@example.com/lab"}}
			}, item: registryv1alpha1.CheckCredential, ends: true,
			message: "The kubeconfig isn't taken: line 12, users[0].user.exec: exec names a program",
			remedy:  registerAgain + " --vault-path 'users/ann@example.com/lab' --write-kubeconfig closed.kubeconfig"},
		"Credential: the kubeconfig in a Secret that register didn't make isn't of the closed form": {
			when: func(tr *trial) { opens(closed)(tr); tr.keptIn("mine") }, item: registryv1alpha1.CheckCredential, ends: true,
			message: "The kubeconfig isn't taken: line 12, users[0].user.exec: exec names a program", remedy: replaceMine},
		"Credential: its source can't be read": {
			when: opens(fmt.Errorf("reading: %w", advice("Grant the hub get on Secret lab."))), item: registryv1alpha1.CheckCredential, ends: true,
			message: "Grant the hub get on Secret lab.", state: registryv1alpha1.TargetCredentialUnavailable},
		"Credential: the hub fails for a reason of its own, which isn't told": {
			when: opens(errors.New("s3cret")), item: registryv1alpha1.CheckCredential, ends: true,
			message: "The hub couldn't read the kubeconfig. " + theCause, state: registryv1alpha1.TargetCredentialUnavailable},

		"Reachable: the connection is refused": {
			when: ends("WhoAmI", fail(failure.Unreachable, errors.New("dial tcp 10.0.0.1:443: connection refused"))),
			item: registryv1alpha1.CheckReachable, ends: true, message: coarse, state: registryv1alpha1.TargetUnreachable},
		"Reachable: its address is denied": {
			when: ends("WhoAmI", fail(failure.Unreachable, errors.New("169.254.169.254 is denied"))),
			item: registryv1alpha1.CheckReachable, ends: true, message: coarse, state: registryv1alpha1.TargetUnreachable},
		"Reachable: what answers can't serve": {
			when: ends("WhoAmI", serverError(503, "s3cret")),
			item: registryv1alpha1.CheckReachable, ends: true, message: noAPI, remedy: ready},
		"Reachable: what answers is no API": {
			when: ends("WhoAmI", fail(failure.Unexpected, errors.New("s3cret"))),
			item: registryv1alpha1.CheckReachable, ends: true, message: noAPI, remedy: ready},

		"Authenticated: the token isn't accepted": {
			when: ends("WhoAmI", unauthorized), item: registryv1alpha1.CheckAuthenticated, ends: true,
			message: rejected, remedy: another + " --create-credential", state: registryv1alpha1.TargetCredentialRejected},
		"Authenticated: the token in a Secret that register didn't make isn't accepted": {
			when: func(tr *trial) { ends("WhoAmI", unauthorized)(tr); tr.keptIn("mine") }, item: registryv1alpha1.CheckAuthenticated, ends: true,
			message: tokenEnded + "Put a kubeconfig of the closed form with a token that works into Secret mine: the command that the probe prints does that.",
			remedy:  replaceMine, state: registryv1alpha1.TargetCredentialRejected},
		"Authenticated: the token in Vault isn't accepted": {
			when: func(tr *trial) {
				ends("WhoAmI", unauthorized)(tr)
				tr.spec.Target.CredentialRef = registryv1alpha1.TargetCredentialRef{VaultRef: &registryv1alpha1.TargetVaultRef{Path: "users/ann/lab"}}
			}, item: registryv1alpha1.CheckAuthenticated, ends: true,
			message: rejected, remedy: another + " --vault-path users/ann/lab --write-kubeconfig closed.kubeconfig --create-credential", state: registryv1alpha1.TargetCredentialRejected},
		"Authenticated: the token is taken for nobody's": {
			when: func(tr *trial) { tr.target.user = "system:anonymous" }, item: registryv1alpha1.CheckAuthenticated, ends: true,
			message: rejected, remedy: another + " --create-credential", state: registryv1alpha1.TargetCredentialRejected},
		"Authenticated: it may not ask who it is": {
			when: ends("WhoAmI", serverError(403, "")), item: registryv1alpha1.CheckAuthenticated, ends: true,
			message: "The target's API forbids the credential to ask who it is (create selfsubjectreviews.authentication.k8s.io), which the " +
				"ClusterRole system:basic-user lets every user do. Ask the cluster's administrator to restore that.",
			remedy: "kubectl --kubeconfig kubeconfig create clusterrolebinding cellcast-basic-user --clusterrole=system:basic-user --group=system:authenticated"},
		"Authenticated: the API is too old to be asked": {
			when: ends("WhoAmI", notFound("selfsubjectreviews")), item: registryv1alpha1.CheckAuthenticated, ends: true,
			message: "The target's API has no selfsubjectreviews.authentication.k8s.io/v1: it must be of Kubernetes 1.28 or newer.",
			remedy:  "kubectl --kubeconfig kubeconfig version"},

		"Namespace: there is none": {
			when: func(tr *trial) { delete(tr.target.metadata, "/api/v1/namespaces/team") }, item: registryv1alpha1.CheckNamespace, ends: true,
			message: "The target has no namespace team. Create it, or correct spec.namespace (" + editRow + ").",
			remedy:  "kubectl --kubeconfig kubeconfig create namespace team"},
		"Namespace: it's being deleted": {
			when: func(tr *trial) {
				now := metav1.Now()
				tr.target.metadata["/api/v1/namespaces/team"] = metav1.ObjectMeta{Name: "team", DeletionTimestamp: &now}
			},
			item: registryv1alpha1.CheckNamespace, ends: true,
			message: "Namespace team is being deleted on the target. Wait until it's gone and create it anew, or register another.",
			remedy:  "kubectl --kubeconfig kubeconfig wait --for=delete namespace/team --timeout=10m && kubectl --kubeconfig kubeconfig create namespace team"},
		"Namespace: it may not be seen, and the rest is looked at all the same": {
			when: without("get namespaces"), item: registryv1alpha1.CheckNamespace,
			message: "The credential may not get namespace team, or there is none: to who may not look, an API server says the same of both. If it's there, a Role in it can grant that (get on namespaces): " +
				"on the target, apply the one that the probe prints.",
			remedy: applied + "kind: Role\n"},
		"Namespace: it may not be seen, and nobody can tell by whom": {
			when: func(tr *trial) { tr.target.user = "a\nb"; without("get namespaces")(tr) }, item: registryv1alpha1.CheckNamespace,
			message: "The credential may not get namespace team, or there is none: to who may not look, an API server says the same of both. If it's there, a Role in it can grant that (get on namespaces)."},

		"Permissions: two verbs are missing": {
			when: without("delete pods", "get pods/log"), item: registryv1alpha1.CheckPermissions,
			message: "In namespace team the credential may not delete pods, get pods/log. On the target, apply the Role that the probe prints: it holds all that the hub needs.",
			remedy:  applied + "kind: Role\n"},
		"Permissions: a verb is missing, and nobody can tell of whom": {
			when: func(tr *trial) { tr.target.user = "a\nb"; delete(tr.target.rights, "list pods") }, item: registryv1alpha1.CheckPermissions,
			message: "In namespace team the credential may not list pods. Give it a Role with these rights."},

		"ExcessPermissions: its own rights may not be listed": {
			when: ends("ReviewRules", serverError(403, "")), item: registryv1alpha1.CheckExcess, result: registryv1alpha1.CheckSkipped,
			message: "Not looked at: the target forbids the credential to list its own rights (create selfsubjectrulesreviews.authorization.k8s.io)."},
		"ExcessPermissions: the API can't answer now": {
			when: ends("ReviewRules", serverError(503, "s3cret")), item: registryv1alpha1.CheckExcess,
			message: "The target's API answered that it can't serve now, when asked to list the credential's rights. Probe again when it does.", remedy: ready},

		"PullSecrets: one is absent": {
			when: func(tr *trial) { delete(tr.target.metadata, "/api/v1/namespaces/team/secrets/pull") }, item: registryv1alpha1.CheckPullSecrets,
			message: "Namespace team has no Secret pull, with which pods shall pull their images. Create it, or take it out of spec.imagePullSecrets (" + editRow + ").",
			remedy:  onTeam + "create secret generic pull --type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson=config.json"},
		"PullSecrets: two are absent": {
			when: func(tr *trial) {
				delete(tr.target.metadata, "/api/v1/namespaces/team/secrets/pull")
				tr.spec.Target.ImagePullSecrets = []string{"pull", "mirror"}
				tr.target.rights["get secrets mirror"] = true
			}, item: registryv1alpha1.CheckPullSecrets,
			message: "Namespace team has no Secret pull, mirror, with which pods shall pull their images. Create it, or take it out of spec.imagePullSecrets (" + editRow + ").",
			remedy: onTeam + "create secret generic pull --type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson=config.json && " +
				onTeam + "create secret generic mirror --type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson=config.json"},
		"PullSecrets: they may not be seen": {
			when: without("get secrets pull"), item: registryv1alpha1.CheckPullSecrets, result: registryv1alpha1.CheckSkipped,
			message: "Not looked at: the credential may not get secrets pull. The right serves this item alone; pods pull with them without it."},

		"SigningKeys: they may not be read": {
			when: ends("Document "+jwks, serverError(403, "")), item: registryv1alpha1.CheckSigningKeys,
			message: keysForbidden + ", as the command that the probe prints does.", remedy: bindKeys + ":team:cellcast-lab --clusterrole=system:service-account-issuer-discovery --serviceaccount=team:cellcast-lab"},
		"SigningKeys: the issuer may not be read": {
			when: ends("Document "+discoveryPath, serverError(403, "")), item: registryv1alpha1.CheckSigningKeys,
			message: keysForbidden + ", as the command that the probe prints does.", remedy: bindKeys + ":team:cellcast-lab --clusterrole=system:service-account-issuer-discovery --serviceaccount=team:cellcast-lab"},
		"SigningKeys: a user may not read them": {
			when: func(tr *trial) { tr.target.user = "O'Brien"; ends("Document "+jwks, serverError(403, ""))(tr) }, item: registryv1alpha1.CheckSigningKeys,
			message: keysForbidden + ", as the command that the probe prints does.", remedy: bindKeys + `:User:e6e62496 --clusterrole=system:service-account-issuer-discovery '--user=O'\''Brien'`},
		"SigningKeys: they may not be read, and nobody can tell by whom": {
			when: func(tr *trial) { tr.target.user = "a\nb"; ends("Document "+jwks, serverError(403, ""))(tr) }, item: registryv1alpha1.CheckSigningKeys,
			message: keysForbidden + "."},
		"SigningKeys: none are published": {
			when: ends("Document "+jwks, notFound("jwks")), item: registryv1alpha1.CheckSigningKeys,
			message: "The target doesn't publish its signing keys (404 at /openid/v1/jwks or /.well-known/openid-configuration), by which pods prove who they are. " +
				"Ask the cluster's administrator: its API server does so where its --service-account-issuer is an https URL."},
		"SigningKeys: there are 10,000": {
			when: publishes(jwks, `{"keys":[{}`+strings.Repeat(",{}", 9999)+`]}`), item: registryv1alpha1.CheckSigningKeys, message: noKeys},
		"SigningKeys: there is none that checks a signature": {
			when: publishes(jwks, `{"keys":[{"kty":"oct","k":"czNjcmV0"}]}`), item: registryv1alpha1.CheckSigningKeys, message: noKeys},
		"SigningKeys: they're too large to be read": {
			when: ends("Document "+jwks, fail(failure.Unexpected, errors.New("http: request body too large"))), item: registryv1alpha1.CheckSigningKeys, message: noKeys},
		"SigningKeys: the issuer isn't named": {
			when: publishes(discoveryPath, `{}`), item: registryv1alpha1.CheckSigningKeys, message: noIssuer},
		"SigningKeys: the issuer is longer than the row takes": {
			when: publishes(discoveryPath, `{"issuer":"https://`+strings.Repeat("a", 512)+`"}`), item: registryv1alpha1.CheckSigningKeys, message: noIssuer},
		"SigningKeys: the issuer has a line break": {
			when: publishes(discoveryPath, `{"issuer":"https://a\nb"}`), item: registryv1alpha1.CheckSigningKeys, message: noIssuer},
		"SigningKeys: the hub can't record the issuer": {
			when: func(tr *trial) { tr.record.fails["Identified"] = errors.New("conflict") }, item: registryv1alpha1.CheckSigningKeys,
			message: "The hub couldn't record how far the probe has come, so it went no further here. Probe again. " + theCause},

		"Tokens: they may not be minted": {
			when: without("create serviceaccounts/token turns"), item: registryv1alpha1.CheckTokens, result: registryv1alpha1.CheckSkipped,
			message: "The credential may not create serviceaccounts/token turns. The right serves clustertargets/token alone: without it this target gives no tokens.",
			remedy:  applied + "kind: Role\nmetadata:\n  labels:\n    app.kubernetes.io/part-of: cellcast\n  name: cellcast-hub-tokens:cellcast-lab\n"},

		"LocalQueue: Kueue isn't installed": {
			when: func(tr *trial) { delete(tr.target.documents, kueue) }, item: registryv1alpha1.CheckLocalQueue, result: registryv1alpha1.CheckWarning,
			message: "Agent turns only, no measure jobs: Kueue isn't installed on the target (it serves no kueue.x-k8s.io). " +
				"Ask the cluster's administrator for it, or leave out spec.queue.",
			remedy: `kubectl patch clustertarget lab -n payments --type merge -p '{"spec":{"queue":null}}'`},
		"LocalQueue: it may not be seen": {
			when: without("get localqueues.kueue.x-k8s.io measure"), item: registryv1alpha1.CheckLocalQueue, result: registryv1alpha1.CheckSkipped,
			message: "Not looked at, so the target runs no measure jobs: the credential may not get localqueues.kueue.x-k8s.io measure. The right serves this item alone.",
			remedy:  applied + "kind: Role\nmetadata:\n  labels:\n    app.kubernetes.io/part-of: cellcast\n  name: cellcast-hub-local-queue:cellcast-lab\n"},
		"LocalQueue: there is none": {
			when: func(tr *trial) { delete(tr.target.metadata, kueue+"/v1beta2/namespaces/team/localqueues/measure") }, item: registryv1alpha1.CheckLocalQueue,
			message: "Namespace team has no LocalQueue measure. Correct spec.queue (" + editRow + "), or create it: the command that the probe prints lists those that there are.",
			remedy:  onTeam + "get localqueues.kueue.x-k8s.io"},
		"LocalQueue: the versions would lead elsewhere": {
			when: publishes(kueue, `{"preferredVersion":{"version":"../../api/v1/namespaces/other/secrets"}}`), item: registryv1alpha1.CheckLocalQueue,
			message: "The target's API gave no answer that the hub understands, when asked to read which versions of kueue.x-k8s.io it serves. " + theCause, remedy: ready},

		"SandboxResource: the operator isn't installed": {
			when: func(tr *trial) { delete(tr.target.documents, agents) }, item: registryv1alpha1.CheckSandbox, result: registryv1alpha1.CheckWarning,
			message: "Agent turns only, with nested Podman: the target serves no sandboxes.agents.x-k8s.io. " +
				"Ask the cluster's administrator for the operator of the Sandbox resource, or set spec.sandboxDriver to Podman.",
			remedy: `kubectl patch clustertarget lab -n payments --type merge -p '{"spec":{"sandboxDriver":"Podman"}}'`},
		"SandboxResource: the group has no sandboxes": {
			when: publishes(agents+"/v1alpha1", `{"resources":[{"name":"sandboxclaims"}]}`), item: registryv1alpha1.CheckSandbox, result: registryv1alpha1.CheckWarning,
			message: "Agent turns only, with nested Podman: the target serves no sandboxes.agents.x-k8s.io. " +
				"Ask the cluster's administrator for the operator of the Sandbox resource, or set spec.sandboxDriver to Podman.",
			remedy: `kubectl patch clustertarget lab -n payments --type merge -p '{"spec":{"sandboxDriver":"Podman"}}'`},
		"SandboxResource: a right is missing": {
			when: without("delete sandboxes.agents.x-k8s.io"), item: registryv1alpha1.CheckSandbox, result: registryv1alpha1.CheckWarning,
			message: "Agent turns only, with nested Podman: the credential may not delete sandboxes.agents.x-k8s.io. The rights serve the sandbox driver Kubernetes alone.",
			remedy:  applied + "kind: Role\nmetadata:\n  labels:\n    app.kubernetes.io/part-of: cellcast\n  name: cellcast-hub-sandboxes:cellcast-lab\n"},
		"SandboxResource: its discovery is no JSON": {
			when: publishes(agents, `<html>`), item: registryv1alpha1.CheckSandbox,
			message: "The target's API gave no answer that the hub understands, when asked to read which resources of agents.x-k8s.io it serves. " + theCause, remedy: ready},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, tr *trial) {
				tc.when(tr)
				r := tr.run()
				want := expected(tc.item, tc.result, tc.ends)
				if got := results(r); !maps.Equal(got, want) {
					t.Errorf("items %v, want %v", got, want)
				}
				c := checkOf(t, r, tc.item)
				if c.Message != tc.message {
					t.Errorf("message\n%s, want\n%s", c.Message, tc.message)
				}
				if !strings.HasPrefix(c.Remedy, tc.remedy) || (c.Remedy == "") != (tc.remedy == "") {
					t.Errorf("remedy\n%s\nwant it to begin with\n%s", c.Remedy, tc.remedy)
				}
				checkEnd(t, r, tc.item, tc.message, tc.state, want[tc.item])
			})
		})
	}
}

// expected is how the items end where one of them doesn't pass.
func expected(item registryv1alpha1.TargetCheckName, result registryv1alpha1.CheckResult, ends bool) map[registryv1alpha1.TargetCheckName]registryv1alpha1.CheckResult {
	want := map[registryv1alpha1.TargetCheckName]registryv1alpha1.CheckResult{}
	for _, name := range registryv1alpha1.TargetChecks() {
		_, before := want[item]
		switch {
		case name == item && result != "":
			want[name] = result
		case name == item:
			want[name] = registryv1alpha1.CheckFailed
		case before && ends, name == registryv1alpha1.CheckCanary && result == "":
			want[name] = registryv1alpha1.CheckSkipped
		default:
			want[name] = registryv1alpha1.CheckPassed
		}
	}
	return want
}

func checkEnd(t *testing.T, r Result, item registryv1alpha1.TargetCheckName, message string, state registryv1alpha1.TargetState, result registryv1alpha1.CheckResult) {
	t.Helper()
	failing := ""
	if result == registryv1alpha1.CheckFailed {
		failing = cut(string(item)+": "+message, maxFailing)
		if state == "" {
			state = registryv1alpha1.TargetFailed
		}
	} else if state == "" {
		state = registryv1alpha1.TargetReady
	}
	if r.State != state || r.Failing != failing {
		t.Errorf("state %s, failing %q, want %s, %q", r.State, r.Failing, state, failing)
	}
	if (len(r.Capabilities) > 0) != (state == registryv1alpha1.TargetReady) {
		t.Errorf("a target that is %s has the capabilities %v", state, r.Capabilities)
	}
	for _, c := range r.Checks {
		if strings.Contains(c.Message+c.Remedy, "s3cret") {
			t.Errorf("%s tells a cause: %s", c.Name, c.Message)
		}
		checkText(t, r, c)
	}
}

// checkText sees that a message holds wherever it's read, in the list or alone,
// and sends nobody to a log that has no cause of it.
func checkText(t *testing.T, r Result, c registryv1alpha1.TargetCheck) {
	t.Helper()
	if strings.Contains(c.Message, "below") || strings.Contains(c.Message, "\n") {
		t.Errorf("%s can't be read alone: %s", c.Name, c.Message)
	}
	if strings.Contains(c.Message, "the command that the probe prints") && c.Remedy == "" {
		t.Errorf("%s speaks of a command, and there is none: %s", c.Name, c.Message)
	}
	logged := slices.ContainsFunc(r.Faults, func(f Fault) bool { return f.Check == c.Name })
	if strings.Contains(c.Message, "log under run") && !logged {
		t.Errorf("%s has no cause in the log: %s", c.Name, c.Message)
	}
}

// All that is missing is seen at once.
func TestSeveralItemsFailAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, tr *trial) {
		without("get namespaces", "list pods", "get secrets pull")(tr)
		ends("Document "+jwks, serverError(403, ""))(tr)
		got := results(tr.run())
		for _, name := range []registryv1alpha1.TargetCheckName{registryv1alpha1.CheckNamespace, registryv1alpha1.CheckPermissions, registryv1alpha1.CheckSigningKeys} {
			if got[name] != registryv1alpha1.CheckFailed {
				t.Errorf("%s: %s", name, got[name])
			}
		}
	})
}

func TestRunThatLosesTheTarget(t *testing.T) {
	tests := map[string]struct {
		err     error
		state   registryv1alpha1.TargetState
		message string
	}{
		"the credential is revoked meanwhile": {unauthorized, registryv1alpha1.TargetCredentialRejected, rejected},
		"the target goes away meanwhile":      {fail(failure.Unreachable, errors.New("reset")), registryv1alpha1.TargetUnreachable, coarse},
		"the source of the credential goes away meanwhile": {fail(failure.NoHubToken, advice("Vault is sealed.")),
			registryv1alpha1.TargetCredentialUnavailable, "Vault is sealed."},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, tr *trial) {
				tr.target.fails["ReviewAccess"] = tc.err
				r := tr.run()
				if c := checkOf(t, r, registryv1alpha1.CheckPermissions); r.State != tc.state || c.Message != tc.message {
					t.Errorf("state %s: %s", r.State, c.Message)
				}
				if c := checkOf(t, r, registryv1alpha1.CheckCanary); c.Message != "Not looked at, because Permissions failed." {
					t.Errorf("the canary: %s", c.Message)
				}
				if len(r.Faults) != 1 || !errors.Is(r.Faults[0].Err, tc.err) {
					t.Errorf("faults %v", r.Faults)
				}
			})
		})
	}
}

// A source that fails when the client asks it for a token is no fault of the network.
func TestCredentialThatEndsAtTheFirstCall(t *testing.T) {
	inBubble(t, func(t *testing.T, tr *trial) {
		tr.target.fails["WhoAmI"] = fail(failure.NoHubToken, fmt.Errorf("token: %w", advice("Vault is sealed.")))
		r := tr.run()
		if c := checkOf(t, r, registryv1alpha1.CheckReachable); c.Result != registryv1alpha1.CheckSkipped {
			t.Errorf("Reachable: %s: %s", c.Result, c.Message)
		}
		if c := checkOf(t, r, registryv1alpha1.CheckAuthenticated); r.State != registryv1alpha1.TargetCredentialUnavailable || c.Message != "Vault is sealed." {
			t.Errorf("state %s: %s", r.State, c.Message)
		}
	})
}
