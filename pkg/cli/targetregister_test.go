package cli_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	diff(t, "the rehearsals", []string{hubRow, hubSecret, hubRole, hubBinding}, o.hub.rehearsed)
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
			o.hub.failsLater = true
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
	const otherAccount = "Name another ServiceAccount with --credential-service-account, or see whose it is and delete it.\n"
	const otherName = "Choose another name, or see whose it is and delete it.\n"
	for name, test := range map[string]struct {
		at   func(*owner) *fakeAPI
		path string
		is   object
		says string
		next string
	}{
		"the ServiceAccount": {func(o *owner) *fakeAPI { return o.target }, account, object{"kind": "ServiceAccount"}, "update ServiceAccount cellcast-eu in namespace shop at the target", otherAccount},
		"a Role on the target": {func(o *owner) *fakeAPI { return o.target }, roles + partName(contract.Needed), object{"kind": "Role", "rules": []any{}},
			"update Role " + partName(contract.Needed) + " in namespace shop at the target", otherAccount},
		"the token's Secret": {func(o *owner) *fakeAPI { return o.target }, accountToken, object{"kind": "Secret", "type": "Opaque", "data": object{"password": "U0VDUkVU"}},
			"update Secret cellcast-eu-token in namespace shop at the target", otherAccount},
		"the Secret of the hub": {func(o *owner) *fakeAPI { return o.hub }, hubSecret, object{"kind": "Secret", "type": "cellcast.io/kubeconfig", "data": object{}},
			"update Secret eu-kubeconfig in namespace payments at the hub", otherName},
		"the Role of the hub": {func(o *owner) *fakeAPI { return o.hub }, hubRole, object{"kind": "Role", "rules": []any{}},
			"update Role eu-kubeconfig in namespace payments at the hub", otherName},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			at, is := foreign(test.path, test.is)
			before := len(is)
			test.at(o).objects[at] = is
			got := o.register(o.kubeconfig(staticUser), "--create-credential")
			want := "Error: " + test.says + ": there is one that cellcast target register didn't make for this target: it's left as it is\n" + test.next
			if got.code != 3 || !strings.HasSuffix(got.err, want) {
				t.Errorf("got %+v", got)
			}
			if len(test.at(o).at(at)) != before || test.at(o).at(at)["metadata"].(object)["uid"] != "theirs" {
				t.Errorf("it was changed: %v", test.at(o).at(at))
			}
			if o.hub.at(hubRow) != nil {
				t.Error("the row is there")
			}
			if test.next == otherName {
				diff(t, "the changes on the target", []string(nil), o.target.changed())
			}
		})
	}
}

// A credential that no row uses would live on.
func TestWhatTheHubRefusesIsRefusedBeforeAnythingIsMade(t *testing.T) {
	const takesSomebody = "It takes somebody who may do that at the hub. This run created nothing.\n"
	const again = "This run created nothing: run the same command again.\n"
	const otherAddress = "Line and field are those of the kubeconfig that the hub would get, whose server is TARGET. " +
		"--endpoint names another address at which the hub finds that API; or the hub's operator permits this one.\n"
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "registry.cellcast.io", Resource: "clustertargets"}, "eu", errors.New("x"))
	denied.ErrStatus.Message = `admission webhook "targets.cellcast.io" denied the request: a fleet cell is called eu`
	port := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "eu-kubeconfig", field.ErrorList{field.Invalid(field.NewPath("data").Key("kubeconfig"), field.OmitValueType{},
		"line 7, clusters[0].cluster.server: the hub doesn't connect to this port; ask for this one to be permitted")})
	grants := apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "eu-kubeconfig", errors.New("attempting to grant RBAC permissions not currently held"))
	down := apierrors.NewInternalError(errors.New(`failed calling webhook "secrets.cellcast.io"`))
	for name, test := range map[string]struct {
		registered bool
		refuses    string
		with       *apierrors.StatusError
		code       int
		err        string
	}{
		"the row":                         {false, "POST " + strings.TrimSuffix(hubRow, "/eu"), denied, 3, "create ClusterTarget eu in namespace payments at the hub: " + denied.ErrStatus.Message + "\n"},
		"a namespace that isn't there":    {false, "POST " + strings.TrimSuffix(hubRow, "/eu"), apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "payments"), 1, "create ClusterTarget eu in namespace payments at the hub: namespaces \"payments\" not found\nIs the namespace there, and is it the right context of the hub? At the hub, is cellcast installed?\n"},
		"the address of the API":          {false, "POST " + strings.TrimSuffix(hubSecret, "/eu-kubeconfig"), port, 3, "create Secret eu-kubeconfig in namespace payments at the hub: " + port.ErrStatus.Message + "\n" + otherAddress},
		"the address of a known target":   {true, "PUT " + hubSecret, port, 3, "update Secret eu-kubeconfig in namespace payments at the hub: " + port.ErrStatus.Message + "\n" + otherAddress},
		"a Role that an editor can't see": {false, "GET " + hubRole, grants, 3, "get Role eu-kubeconfig in namespace payments at the hub: " + grants.ErrStatus.Message + "\n" + takesSomebody},
		"a Role that grants too much":     {false, "POST " + strings.TrimSuffix(hubRole, "/eu-kubeconfig"), grants, 3, "create Role eu-kubeconfig in namespace payments at the hub: " + grants.ErrStatus.Message + "\n" + takesSomebody},
		"the binding of the Role":         {false, "POST " + strings.TrimSuffix(hubBinding, "/eu-kubeconfig"), grants, 3, "create RoleBinding eu-kubeconfig in namespace payments at the hub: " + grants.ErrStatus.Message + "\n" + takesSomebody},
		"a webhook that is down":          {false, "POST " + strings.TrimSuffix(hubSecret, "/eu-kubeconfig"), down, 4, "create Secret eu-kubeconfig in namespace payments at the hub: " + down.ErrStatus.Message + "\n" + again},
		"a hub that takes no more now":    {false, "POST " + strings.TrimSuffix(hubRow, "/eu"), apierrors.NewTooManyRequests("slow down", 0), 4, "create ClusterTarget eu in namespace payments at the hub: slow down\n" + again},
		"a hub that took too long":        {false, "POST " + strings.TrimSuffix(hubRole, "/eu-kubeconfig"), apierrors.NewTimeoutError("no answer", 0), 4, "create Role eu-kubeconfig in namespace payments at the hub: Timeout: no answer\n" + again},
		"too large a kubeconfig":          {true, "PUT " + hubSecret, apierrors.NewRequestEntityTooLargeError("limit is 3145728"), 1, "update Secret eu-kubeconfig in namespace payments at the hub: Request entity too large: limit is 3145728\n"},
		"a field that the hub lacks":      {false, "POST " + strings.TrimSuffix(hubRow, "/eu"), apierrors.NewBadRequest(`strict decoding error: unknown field "spec.queue"`), 3, "create ClusterTarget eu in namespace payments at the hub: strict decoding error: unknown field \"spec.queue\"\n"},
		"a row that one may not see":      {false, "GET " + hubRow, grants, 3, "get clustertargets eu in namespace payments at the hub: " + grants.ErrStatus.Message + "\n" + takesSomebody},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			if test.registered {
				o.register(o.kubeconfig(staticUser))
				o.hub.changed()
			}
			o.hub.fails[test.refuses] = test.with
			diff(t, "the answer", answerOf{test.code, "", "Error: " + test.err}, o.register(o.kubeconfig(staticUser), "--create-credential"))
			diff(t, "the changes", []string(nil), append(o.hub.changed(), o.target.changed()...))
		})
	}
}

func TestAHubThatDoesNotAnswerIsFoundBeforeAnythingIsMade(t *testing.T) {
	o := newOwner(t)
	o.hub.rehearsing = func(string) *apierrors.StatusError { panic(http.ErrAbortHandler) }
	got := o.register(o.kubeconfig(staticUser), "--create-credential")
	if got.code != 4 || !strings.HasSuffix(got.err, "\nCheck the way to the hub. This run created nothing: run the same command again.\n") {
		t.Errorf("got %+v", got)
	}
	diff(t, "the changes", []string(nil), append(o.hub.changed(), o.target.changed()...))
}

func TestWhatADryRunCantTellIsNoRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		at   string
		says *apierrors.StatusError
	}{
		// The Role comes before what binds it, and a rehearsal makes neither.
		"a binding without its Role": {hubBinding, apierrors.NewNotFound(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}, "eu-kubeconfig")},
		"a webhook that is for none": {hubSecret, apierrors.NewBadRequest(`admission webhook "quota.example.com" does not support dry run`)},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			o.hub.rehearsing = func(at string) *apierrors.StatusError {
				if at == test.at {
					return test.says
				}
				return nil
			}
			if got := o.register(o.kubeconfig(staticUser)); got.code != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestNoTokenIsRehearsed(t *testing.T) {
	o := newOwner(t)
	o.register(o.kubeconfig(staticUser), "--create-credential")
	content, err := base64.StdEncoding.DecodeString(o.hub.rehearsedAs[hubSecret]["data"].(object)["kubeconfig"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if closed, err := kubeconfig.Parse(content); err != nil || closed.Server != o.target.URL || strings.Contains(closed.Token.Reveal(), "SECRET") {
		t.Errorf("%v: it isn't of the closed form, or has a token", err)
	}
}

func TestAnEndpointThatNoHubTakesIsRefusedBeforeAnythingIsMade(t *testing.T) {
	o := newOwner(t)
	got := o.register(o.kubeconfig(staticUser), "--create-credential", "--endpoint", "http://eu.example.com")
	if got.code != 2 || !strings.HasPrefix(got.err, "Error: the hub wouldn't take this kubeconfig: clusters[0].cluster.server: ") {
		t.Errorf("got %+v", got)
	}
	diff(t, "the changes", []string(nil), append(o.hub.changed(), o.target.changed()...))
}

// A row that GitOps made has its kubeconfig where GitOps put it.
func TestASecretThatRegisterDidNotMakeIsReplacedByHand(t *testing.T) {
	const create = "kubectl create secret generic SECRET -n payments --type=cellcast.io/kubeconfig --from-file=kubeconfig=FILE"
	const replace = create + " --dry-run=client -o yaml | kubectl replace -f - --kubeconfig DIR/hub.kubeconfig\n"
	names := func(o *owner, secret string) {
		o.hub.at(hubRow)["spec"].(object)["credentialRef"] = object{"secretRef": object{"name": secret}}
	}
	for name, test := range map[string]struct {
		before func(*owner)
		args   []string
		want   answerOf
	}{
		"of the name that register would choose": {func(o *owner) { o.hub.at(hubSecret)["metadata"] = object{"name": "eu-kubeconfig", "uid": "theirs"} }, nil,
			answerOf{3, "", "Error: update Secret eu-kubeconfig in namespace payments at the hub: there is one that cellcast target register didn't make for this target: it's left as it is\n" +
				"Put a kubeconfig of the closed form, FILE, into it yourself:\n  " + strings.ReplaceAll(replace, "SECRET", "eu-kubeconfig")}},
		"of another name": {func(o *owner) {
			names(o, "mine")
			o.hub.objects["/api/v1/namespaces/payments/secrets/mine"] = object{"kind": "Secret", "metadata": object{"name": "mine"}}
		}, nil, answerOf{2, "", "Error: target payments/eu is registered already, with its kubeconfig in Secret \"mine\", which cellcast target register didn't make\nSee cellcast target register --help\n" +
			"Choose another name for the target, or put a kubeconfig of the closed form, FILE, into that Secret yourself:\n  " + strings.ReplaceAll(replace, "SECRET", "mine")}},
		"that is to come": {func(o *owner) { names(o, "mine") }, nil,
			answerOf{2, "", "Error: target payments/eu is registered already, with its kubeconfig in Secret \"mine\", which cellcast target register didn't make\nSee cellcast target register --help\n" +
				"Choose another name for the target, or put a kubeconfig of the closed form, FILE, into that Secret yourself:\n  " + strings.ReplaceAll(create, "SECRET", "mine") + " --kubeconfig DIR/hub.kubeconfig\n"}},
		"of a name for another shell": {func(o *owner) { names(o, "a b;c") }, nil,
			answerOf{2, "", "Error: target payments/eu is registered already, with its kubeconfig in Secret \"a b;c\", which cellcast target register didn't make\nSee cellcast target register --help\n" +
				"Choose another name for the target, or put a kubeconfig of the closed form, FILE, into that Secret yourself:\n  " + strings.ReplaceAll(create, "SECRET", "'a b;c'") + " --kubeconfig DIR/hub.kubeconfig\n"}},
		"but register did, and Vault is named now": {func(*owner) {}, []string{"--vault-path", "users/jo/eu", "--write-kubeconfig", "closed"},
			answerOf{2, "", "Error: target payments/eu is registered already, with its kubeconfig in Secret \"eu-kubeconfig\": leave out --vault-path, or choose another name\nSee cellcast target register --help\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			o.register(o.kubeconfig(staticUser))
			o.hub.changed()
			test.before(o)
			diff(t, "the answer", test.want, o.register(o.kubeconfig(staticUser), append(test.args, "--create-credential")...))
			diff(t, "the changes", []string(nil), append(o.hub.changed(), o.target.changed()...))
		})
	}
}

func TestFlagsThatARegisteredTargetDoesNotFollowAreNamed(t *testing.T) {
	o := newOwner(t)
	o.register(o.kubeconfig(staticUser), "--queue", "gpu", "--label", "env=dev")
	const already = "Target payments/eu is registered already: its row is left as it is, and its credential is brought up to date.\n"
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"what the row says too": {[]string{"--queue", "gpu", "--label", "env=dev", "--sandbox-driver", "podman"}, ""},
		"one":                   {[]string{"--queue", "cpu"}, "--queue isn't followed, for the row says otherwise. To change the row: kubectl edit clustertarget eu -n payments --kubeconfig DIR/hub.kubeconfig\n"},
		"all": {[]string{"--service-account", "turns", "--pull-secret", "registry", "--queue", "cpu", "--sandbox-driver", "Kubernetes", "--ingest-url", "https://hub.example.com", "--owner-group", "payments", "--label", "env=prod"},
			"--service-account, --pull-secret, --queue, --sandbox-driver, --ingest-url, --owner-group and --label aren't followed, for the row says otherwise. To change the row: kubectl edit clustertarget eu -n payments --kubeconfig DIR/hub.kubeconfig\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := o.register(o.kubeconfig(staticUser), test.args...); got.code != 0 || !strings.HasPrefix(got.err, already+test.says+"Unchanged ") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestATargetThatIsBeingDeletedMayClear(t *testing.T) {
	o := newOwner(t)
	o.register(o.kubeconfig(staticUser))
	o.hub.at(hubRow)["metadata"].(object)["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	diff(t, "the answer", answerOf{4, "", "Error: target payments/eu is being deleted\nRun the same command again when it has gone: kubectl get clustertarget eu -n payments --kubeconfig DIR/hub.kubeconfig\n"},
		o.register(o.kubeconfig(staticUser)))
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
