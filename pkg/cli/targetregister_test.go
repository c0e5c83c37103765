package cli_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/kubeconfig"
	"cellcast.io/cellcast/pkg/probe/contract"
)

const (
	hubSecret  = "/api/v1/namespaces/payments/secrets/eu-kubeconfig"
	hubRole    = "/apis/rbac.authorization.k8s.io/v1/namespaces/payments/roles/eu-kubeconfig"
	hubBinding = "/apis/rbac.authorization.k8s.io/v1/namespaces/payments/rolebindings/eu-kubeconfig"
	hubRow     = "/apis/registry.cellcast.io/v1alpha1/namespaces/payments/clustertargets/eu"

	account      = "/api/v1/namespaces/shop/serviceaccounts/cellcast-eu"
	accountToken = "/api/v1/namespaces/shop/secrets/cellcast-eu-token"
	roles        = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles/"
	bindings     = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings/"

	staticUser = "{token: " + ownToken + "}"
	execUser   = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /nonexistent-SECRET, interactiveMode: Never}}"
)

// partName is what the contract calls the Role of a part.
func partName(p contract.Part) string {
	return p.Binding(registryv1alpha1.ClusterTargetSpec{Namespace: "shop"}, contract.Account("shop", "cellcast-eu")).Name
}

func partNames(text string) string {
	return strings.NewReplacer("NEEDED", partName(contract.Needed), "TOKENS", partName(contract.Tokens), "QUEUE", partName(contract.LocalQueue)).Replace(text)
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmp.AllowUnexported(answerOf{})); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestATokenThatLastsIsRegisteredAsItIs(t *testing.T) {
	o := newOwner(t)
	got := o.register(o.kubeconfig(staticUser), "--owner-group", "payments", "--pull-secret", "registry", "--label", "env=dev")
	diff(t, "the answer", answerOf{0, "", `Created Secret eu-kubeconfig in namespace payments at the hub.
Created Role eu-kubeconfig in namespace payments at the hub.
Created RoleBinding eu-kubeconfig in namespace payments at the hub.
Created ClusterTarget eu in namespace payments at the hub.
Next: kubectl cellcast probe eu -n payments --kubeconfig DIR/hub.kubeconfig
`}, got)
	diff(t, "the changes", []string{"create " + hubSecret, "create " + hubRole, "create " + hubBinding, "create " + hubRow}, o.hub.changed())
	diff(t, "the rehearsals", []string{hubRow}, o.hub.rehearsed)
	if o.target.paths() != nil {
		t.Errorf("on the target: %v", o.target.paths())
	}
	closed, err := kubeconfig.Parse([]byte(o.stored()))
	if err != nil || closed.Server != o.target.URL || string(closed.CAData) != o.target.ca() || closed.Token.Reveal() != ownToken {
		t.Errorf("the kubeconfig isn't the closed form of the user's: %v", err)
	}
	secret := o.hub.at(hubSecret)
	diff(t, "the type", any("cellcast.io/kubeconfig"), secret["type"])
	diff(t, "the annotations", object{"registry.cellcast.io/registered-target": "payments/eu"}, secret["metadata"].(object)["annotations"].(object))
	diff(t, "the Role", []any{object{"apiGroups": []any{""}, "resources": []any{"secrets"}, "resourceNames": []any{"eu-kubeconfig"}, "verbs": []any{"get"}}}, o.hub.at(hubRole)["rules"].([]any))
	diff(t, "the RoleBinding", []any{object{"kind": "ServiceAccount", "namespace": "cellcast-system", "name": "cellcast-hub"}}, o.hub.at(hubBinding)["subjects"].([]any))
	diff(t, "the row", object{"artifacts": object{}, "bindings": object{}, "images": object{}, "owner": object{"group": "payments"}, "credentialRef": object{"secretRef": object{"name": "eu-kubeconfig"}},
		"namespace": "shop", "serviceAccountName": "default", "sandboxDriver": "Podman", "imagePullSecrets": []any{"registry"}}, o.hub.at(hubRow)["spec"].(object))
}

func TestACredentialIsMadeWithTheContractAndNoMore(t *testing.T) {
	o := newOwner(t)
	// It acts on the target with whatever the user has there.
	got := o.register(o.kubeconfig(staticUser), "--create-credential", "--queue", "gpu")
	diff(t, "the answer", answerOf{0, "", partNames(`On the target (context "eu", TARGET) are created, unless they are there already:
  ServiceAccount cellcast-eu in namespace shop
  Role NEEDED in namespace shop
  RoleBinding NEEDED in namespace shop
  Secret cellcast-eu-token in namespace shop
  Role TOKENS in namespace shop
  RoleBinding TOKENS in namespace shop
  Role QUEUE in namespace shop
  RoleBinding QUEUE in namespace shop
Created ServiceAccount cellcast-eu in namespace shop at the target.
Created Role NEEDED in namespace shop at the target.
Created RoleBinding NEEDED in namespace shop at the target.
Created Secret cellcast-eu-token in namespace shop at the target.
Created Role TOKENS in namespace shop at the target.
Created RoleBinding TOKENS in namespace shop at the target.
Created Role QUEUE in namespace shop at the target.
Created RoleBinding QUEUE in namespace shop at the target.
Created Secret eu-kubeconfig in namespace payments at the hub.
Created Role eu-kubeconfig in namespace payments at the hub.
Created RoleBinding eu-kubeconfig in namespace payments at the hub.
Created ClusterTarget eu in namespace payments at the hub.
Next: kubectl cellcast probe eu -n payments --kubeconfig DIR/hub.kubeconfig
`)}, got)
	closed, err := kubeconfig.Parse([]byte(o.stored()))
	if err != nil || closed.Token.Reveal() != issuedToken {
		t.Errorf("the kubeconfig hasn't the token that was issued: %v", err)
	}
	diff(t, "whose token", "cellcast-eu", o.target.at(accountToken)["metadata"].(object)["annotations"].(object)["kubernetes.io/service-account.name"].(string))
	diff(t, "what was made, for whoever clears up", "shop/cellcast-eu", o.hub.at(hubSecret)["metadata"].(object)["annotations"].(object)["registry.cellcast.io/target-serviceaccount"].(string))
	diff(t, "who may", []any{object{"kind": "ServiceAccount", "namespace": "shop", "name": "cellcast-eu"}}, o.target.at(bindings + partName(contract.Needed))["subjects"].([]any))
	rules := o.target.at(roles + partName(contract.Needed))["rules"].([]any)
	for _, rule := range rules {
		for _, word := range append(rule.(object)["verbs"].([]any), rule.(object)["resources"].([]any)...) {
			if word == "*" || word == "secrets" {
				t.Errorf("the Role has %v", rule)
			}
		}
	}
}

func TestWhatAFailureLeftIsCompletedByTheSameCommand(t *testing.T) {
	for name, test := range map[string]struct {
		at   func(*owner) *fakeAPI
		fail string
	}{
		"at the token on the target":    {func(o *owner) *fakeAPI { return o.target }, "POST /api/v1/namespaces/shop/secrets"},
		"at the Role on the target":     {func(o *owner) *fakeAPI { return o.target }, "POST " + strings.TrimSuffix(roles, "/")},
		"at the Secret of the hub":      {func(o *owner) *fakeAPI { return o.hub }, "POST /api/v1/namespaces/payments/secrets"},
		"at the RoleBinding of the hub": {func(o *owner) *fakeAPI { return o.hub }, "POST " + strings.TrimSuffix(hubBinding, "/eu-kubeconfig")},
		"at the row's webhook":          {func(o *owner) *fakeAPI { return o.hub }, "POST " + strings.TrimSuffix(hubRow, "/eu")},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			whole := newOwner(t)
			whole.register(whole.kubeconfig(staticUser), "--create-credential")
			test.at(o).fails[test.fail] = apierrors.NewInternalError(errors.New("failed calling webhook"))
			if got := o.register(o.kubeconfig(staticUser), "--create-credential"); got.code != 4 || !strings.Contains(got.err, "Run the same command again") {
				t.Fatalf("got %+v", got)
			}
			if o.hub.at(hubRow) != nil {
				t.Error("the row is there before all else is")
			}
			delete(test.at(o).fails, test.fail)
			if got := o.register(o.kubeconfig(staticUser), "--create-credential"); got.code != 0 {
				t.Fatalf("got %+v", got)
			}
			diff(t, "on the target", whole.target.paths(), o.target.paths())
			diff(t, "at the hub", whole.hub.paths(), o.hub.paths())
		})
	}
}

func TestANewKubeconfigChangesTheSecretAlone(t *testing.T) {
	o := newOwner(t)
	o.register(o.kubeconfig(staticUser), "--create-credential")
	o.hub.changed()
	o.target.changed()
	got := o.register(o.kubeconfig("{token: rotated.SECRET.token}"))
	diff(t, "the answer", answerOf{0, "", `Target payments/eu is registered already: its row is left as it is, and its credential is brought up to date.
Updated Secret eu-kubeconfig in namespace payments at the hub.
Unchanged Role eu-kubeconfig in namespace payments at the hub.
Unchanged RoleBinding eu-kubeconfig in namespace payments at the hub.
Next: kubectl cellcast probe eu -n payments --kubeconfig DIR/hub.kubeconfig
`}, got)
	diff(t, "the changes", []string{"update " + hubSecret}, append(o.hub.changed(), o.target.changed()...))
	if !strings.Contains(o.stored(), "rotated.SECRET.token") || strings.Contains(o.stored(), issuedToken) {
		t.Error("the Secret hasn't the new token alone")
	}
	if _, made := o.hub.at(hubSecret)["metadata"].(object)["annotations"].(object)["registry.cellcast.io/target-serviceaccount"]; made {
		t.Error("the Secret still speaks of the ServiceAccount whose token it had")
	}
	o.register(o.kubeconfig("{token: rotated.SECRET.token}"))
	diff(t, "the changes of nothing new", []string(nil), o.hub.changed())
}

// Who registers anew says again what is new, and not what the row says already.
func TestFlagsThatAreLeftOutTakeNothingBack(t *testing.T) {
	o := newOwner(t)
	o.register(o.kubeconfig(staticUser), "--create-credential", "--queue", "gpu", "--service-account", "turns")
	o.target.changed()
	if got := o.register(o.kubeconfig(staticUser), "--create-credential"); got.code != 0 || !strings.Contains(got.err, partNames("Unchanged Role QUEUE")) {
		t.Errorf("got %+v", got)
	}
	diff(t, "the changes on the target", []string(nil), o.target.changed())
}

func TestWhatSomebodyElseMadeIsNeverChanged(t *testing.T) {
	foreign := func(at string, o object) (string, object) {
		o["metadata"] = object{"name": at[strings.LastIndex(at, "/")+1:], "uid": "theirs"}
		return at, o
	}
	for name, test := range map[string]struct {
		at   func(*owner) *fakeAPI
		path string
		is   object
		says string
	}{
		"the ServiceAccount": {func(o *owner) *fakeAPI { return o.target }, account, object{"kind": "ServiceAccount"}, "update ServiceAccount cellcast-eu in namespace shop at the target"},
		"a Role on the target": {func(o *owner) *fakeAPI { return o.target }, roles + partName(contract.Needed), object{"kind": "Role", "rules": []any{}},
			"update Role " + partName(contract.Needed) + " in namespace shop at the target"},
		"the token's Secret": {func(o *owner) *fakeAPI { return o.target }, accountToken, object{"kind": "Secret", "type": "Opaque", "data": object{"password": "U0VDUkVU"}},
			"update Secret cellcast-eu-token in namespace shop at the target"},
		"the Secret of the hub": {func(o *owner) *fakeAPI { return o.hub }, hubSecret, object{"kind": "Secret", "type": "cellcast.io/kubeconfig", "data": object{}},
			"update Secret eu-kubeconfig in namespace payments at the hub"},
		"the Role of the hub": {func(o *owner) *fakeAPI { return o.hub }, hubRole, object{"kind": "Role", "rules": []any{}},
			"update Role eu-kubeconfig in namespace payments at the hub"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			at, is := foreign(test.path, test.is)
			before := len(is)
			test.at(o).objects[at] = is
			got := o.register(o.kubeconfig(staticUser), "--create-credential")
			want := "Error: " + test.says + ": there is one that cellcast target register didn't make for this target: it's left as it is\n" +
				"Choose another name, or see whose it is and delete it.\n"
			if got.code != 3 || !strings.HasSuffix(got.err, want) {
				t.Errorf("got %+v", got)
			}
			if len(test.at(o).at(at)) != before || test.at(o).at(at)["metadata"].(object)["uid"] != "theirs" {
				t.Errorf("it was changed: %v", test.at(o).at(at))
			}
			if o.hub.at(hubRow) != nil {
				t.Error("the row is there")
			}
		})
	}
}

func TestWhatTheHubRefusesIsRefusedBeforeAnythingIsMade(t *testing.T) {
	o := newOwner(t)
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "registry.cellcast.io", Resource: "clustertargets"}, "eu", errors.New("x"))
	denied.ErrStatus.Message = `admission webhook "targets.cellcast.io" denied the request: a fleet cell is called eu`
	o.hub.fails["POST "+strings.TrimSuffix(hubRow, "/eu")] = denied
	got := o.register(o.kubeconfig(staticUser), "--create-credential")
	diff(t, "the answer", answerOf{3, "", "Error: create ClusterTarget eu in namespace payments at the hub: " + denied.ErrStatus.Message + "\n"}, got)
	if len(o.hub.paths())+len(o.target.paths()) > 0 {
		t.Errorf("made: %v %v", o.hub.paths(), o.target.paths())
	}
}

func TestAnOptionalRightThatTheUserMayNotGiveIsLeftOut(t *testing.T) {
	o := newOwner(t)
	queue := partName(contract.LocalQueue)
	o.target.fails["GET "+roles+queue] = apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "", errors.New("you may not grant that"))
	got := o.register(o.kubeconfig(staticUser), "--create-credential", "--queue", "gpu")
	if got.code != 0 || !strings.Contains(got.err, "Note: Role "+queue+" in namespace shop isn't created, for you may not do that: ") {
		t.Errorf("got %+v", got)
	}
}

func TestATargetThatIssuesNoTokenIsWaitedForAndNoLonger(t *testing.T) {
	o := newOwner(t)
	o.target.reading = func(string, object) {}
	got := o.register(o.kubeconfig(staticUser), "--create-credential")
	if got.code != 1 || !strings.HasSuffix(got.err, "Error: the target has put no token into Secret cellcast-eu-token of namespace shop in 30s: its controller manager does that; run the same command again when it runs\n") {
		t.Errorf("got %+v", got)
	}
	if o.hub.paths() != nil {
		t.Errorf("at the hub: %v", o.hub.paths())
	}
}

func TestTheUsersCredentialFollowsNoRedirect(t *testing.T) {
	for name, at := range map[string]func(*owner) *fakeAPI{
		"of the target": func(o *owner) *fakeAPI { return o.target },
		"of the hub":    func(o *owner) *fakeAPI { return o.hub },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			elsewhere := false
			other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere = true }))
			defer other.Close()
			at(o).Config.Handler = http.RedirectHandler(other.URL, http.StatusTemporaryRedirect)
			if got := o.register(o.kubeconfig(staticUser), "--create-credential"); got.code == 0 || elsewhere {
				t.Errorf("got %+v; it went elsewhere: %v", got, elsewhere)
			}
		})
	}
}
