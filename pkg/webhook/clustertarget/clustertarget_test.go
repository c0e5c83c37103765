package clustertarget_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	registry "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/webhook"
	"cellcast.io/cellcast/pkg/webhook/clustertarget"
	"cellcast.io/cellcast/pkg/webhook/webhooktest"
)

// cells are the Clusters that the hub knows, by name.
type cells []string

func (c cells) List(labels.Selector) ([]*registry.Cluster, error) {
	var out []*registry.Cluster
	for _, name := range c {
		out = append(out, &registry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return out, nil
}

type broken struct{}

func (broken) List(labels.Selector) ([]*registry.Cluster, error) { return nil, errors.New("no cache") }

func (broken) Allowed(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
	return false, errors.New("no answer")
}

// rights are what users may do: "alice get hers" of Secrets in the namespace
// default, "gitops assign-owner" everywhere, "local assign-owner default" there.
type rights []string

func (r rights) Allowed(_ context.Context, user authenticationv1.UserInfo, a authorizationv1.ResourceAttributes) (bool, error) {
	has := func(words ...string) bool {
		return slices.Contains(r, strings.Join(append([]string{user.Username, a.Verb}, words...), " "))
	}
	secret := authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "secrets", Namespace: "default", Name: a.Name}
	target := authorizationv1.ResourceAttributes{
		Verb: "assign-owner", Group: "registry.cellcast.io", Version: "v1alpha1", Resource: "clustertargets", Namespace: a.Namespace, Name: a.Name,
	}
	switch a {
	case secret:
		return has(a.Name), nil
	case target:
		return has() || a.Namespace != "" && has(a.Namespace), nil
	default:
		return false, nil
	}
}

// vaultPath is the rule of the hub's Vault.
func vaultPath(owner registry.TargetOwner, path string) error {
	prefix := "users/" + url.PathEscape(owner.User) + "/"
	if owner.Group != "" {
		prefix = "groups/" + url.PathEscape(owner.Group) + "/"
	}
	if !strings.HasPrefix(path, prefix) {
		return errors.New("must be under the owner's prefix")
	}
	return nil
}

func TestRows(t *testing.T) {
	handler := clustertarget.NewHandler(cells{}, rights{"operator get payments-kubeconfig", "operator get payments-token-abc12"}, vaultPath, nil)
	for _, row := range webhooktest.Rows(t, "testdata") {
		t.Run(row.Name, func(t *testing.T) {
			resp := handler.Handle(t.Context(), webhooktest.Create(t, row.JSON))
			answer := webhooktest.Answer(t, resp)
			if len(row.Refused) == 0 {
				if !resp.Allowed || len(resp.Warnings) > 0 {
					t.Errorf("refused or warned of: %s", answer)
				}
				return
			}
			if resp.Allowed || resp.Result.Code != http.StatusUnprocessableEntity || resp.Result.Reason != metav1.StatusReasonInvalid {
				t.Fatalf("not refused as invalid: %s", answer)
			}
			var fields []string
			for _, cause := range resp.Result.Details.Causes {
				fields = append(fields, cause.Field)
			}
			if diff := cmp.Diff(row.Refused, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%s", diff, answer)
			}
			if strings.Contains(answer, row.Secret) {
				t.Errorf("the answer quotes %s: %s", row.Secret, answer)
			}
		})
	}
}

type edit func(*registry.ClusterTarget)

// target is the row of alice, by a Secret that she may get, with these changes.
func target(edits ...edit) *registry.ClusterTarget {
	row := &registry.ClusterTarget{
		TypeMeta:   metav1.TypeMeta{APIVersion: registry.SchemeGroupVersion.String(), Kind: "ClusterTarget"},
		ObjectMeta: metav1.ObjectMeta{Name: "payments", Namespace: "default", Labels: map[string]string{"env": "dev"}},
		Spec: registry.ClusterTargetSpec{
			Owner: registry.TargetOwner{User: "alice"}, Namespace: "payments",
			CredentialRef: registry.TargetCredentialRef{SecretRef: &registry.TargetSecretRef{Name: "hers"}},
		},
	}
	for _, e := range edits {
		e(row)
	}
	return row
}

func named(name string) edit {
	return func(row *registry.ClusterTarget) { row.Name = name }
}

func user(name string) edit {
	return func(row *registry.ClusterTarget) { row.Spec.Owner = registry.TargetOwner{User: name} }
}

func group(name string) edit {
	return func(row *registry.ClusterTarget) { row.Spec.Owner = registry.TargetOwner{Group: name} }
}

func nobody(row *registry.ClusterTarget) { row.Spec.Owner = registry.TargetOwner{} }

func env(value string) edit {
	return func(row *registry.ClusterTarget) { row.Labels = map[string]string{"env": value} }
}

func secret(name string) edit {
	return func(row *registry.ClusterTarget) {
		row.Spec.CredentialRef = registry.TargetCredentialRef{SecretRef: &registry.TargetSecretRef{Name: name}}
	}
}

func vault(path string) edit {
	return func(row *registry.ClusterTarget) {
		row.Spec.CredentialRef = registry.TargetCredentialRef{VaultRef: &registry.TargetVaultRef{Path: path, Key: "kubeconfig"}}
	}
}

func queue(name string) edit {
	return func(row *registry.ClusterTarget) { row.Spec.Queue = name }
}

func account(name string) edit {
	return func(row *registry.ClusterTarget) { row.Spec.ServiceAccountName = name }
}

func ingest(at string) edit {
	return func(row *registry.ClusterTarget) { row.Spec.IngestURL = at }
}

// touched changes what whoever may update the row may change.
func touched(row *registry.ClusterTarget) {
	row.Labels["team"], row.Annotations, row.Finalizers = "x", map[string]string{"note": "x"}, []string{"example.com/x"}
}

func raw(t *testing.T, row *registry.ClusterTarget) []byte {
	t.Helper()
	text, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const (
	mustCover     = "spec.owner: Forbidden: must be you, or a group that you are in; whoever has the verb assign-owner on clustertargets by a ClusterRoleBinding may name anybody"
	mustCoverBoth = "spec.owner: Forbidden: old and new owner must both be you, or a group that you are in; whoever has the verb assign-owner on clustertargets by a ClusterRoleBinding may name anybody"
	notYours      = "spec: Forbidden: is for the owner to change, and that is neither you nor a group that you are in; whoever has the verb assign-owner on clustertargets by a ClusterRoleBinding may change it too"
	notYourEnv    = "metadata.labels[env]: Forbidden: sets how long credentials live, so it is for the owner to change, and that is neither you nor a group that you are in; whoever has the verb assign-owner on clustertargets by a ClusterRoleBinding may change it too"
	noOwner       = "spec.owner: Required value: name the user or the group that owns the target"
	systemGroup   = "spec.owner.group: Forbidden: a system: group has members that nobody chose"
	cellName      = "metadata.name: Forbidden: is the name of a cell of the fleet: choose another"
	notUnder      = "spec.credentialRef.vaultRef.path: Forbidden: must be under the owner's prefix"
)

func mayNotGet(name string) string {
	return `spec.credentialRef.secretRef: Forbidden: you must be allowed to get the Secret "` + name +
		`" in the namespace "default": nobody has the hub read what they can't read themselves`
}

// alice is in the group payments, as bob and carol are, and carol may get no
// Secret; gitops may assign owners, local thinks that it may, and mallory may do
// nothing but write rows.
func sender(req admission.Request, name string) admission.Request {
	switch name {
	case "alice", "bob", "carol":
		return webhooktest.As(req, name, "payments", "system:authenticated")
	default:
		return webhooktest.As(req, name, "system:authenticated")
	}
}

var held = rights{"alice get hers", "alice get another", "bob get his", "gitops assign-owner", "gitops get its", "gitops get hers",
	"local assign-owner default", "local get hers", "mallory get theirs"}

func TestCreate(t *testing.T) {
	for sentence, tc := range map[string]struct {
		sender string
		row    *registry.ClusterTarget
		want   []string
	}{
		"takes the row of its owner":                                    {"alice", target(), nil},
		"takes the row of a group that the creator is in":               {"bob", target(group("payments"), secret("his")), nil},
		"refuses another user as owner":                                 {"alice", target(user("bob")), []string{mustCover}},
		"refuses a group that the creator isn't in":                     {"mallory", target(group("payments"), secret("theirs")), []string{mustCover}},
		"refuses an owner whose name is that of a group of the creator": {"alice", target(user("payments")), []string{mustCover}},
		"refuses an owner that differs in case":                         {"alice", target(user("Alice")), []string{mustCover}},
		"takes any owner from one who assigns them":                     {"gitops", target(secret("its")), nil},
		"refuses one who may assign owners in the namespace alone":      {"local", target(), []string{mustCover}},
		"refuses a row that names nobody":                               {"alice", target(nobody), []string{noOwner}},
		"refuses it from one who assigns owners too":                    {"gitops", target(nobody, secret("its")), []string{noOwner}},
		"refuses a system: group that the creator is in":                {"alice", target(group("system:authenticated")), []string{systemGroup}},
		"refuses a system: group from one who assigns owners":           {"gitops", target(group("system:masters"), secret("its")), []string{systemGroup}},
		"refuses a Secret that the creator may not get":                 {"alice", target(secret("his")), []string{mayNotGet("his")}},
		"refuses it from one who assigns owners":                        {"gitops", target(secret("another")), []string{mayNotGet("another")}},
		"refuses it where the owner alone may get it":                   {"bob", target(group("payments"), secret("hers")), []string{mayNotGet("hers")}},
		"takes a path under the user's prefix":                          {"alice", target(vault("users/alice/prod")), nil},
		"takes a path under the group's prefix":                         {"alice", target(group("payments"), vault("groups/payments/prod")), nil},
		"refuses a path under another's prefix":                         {"alice", target(vault("users/bob/prod")), []string{notUnder}},
		"refuses a path of the user's for a target of the group":        {"alice", target(group("payments"), vault("users/alice/prod")), []string{notUnder}},
		"refuses a path under another's prefix from who assigns owners": {"gitops", target(vault("users/gitops/prod")), []string{notUnder}},
		"takes a path under the prefix of whom gitops names":            {"gitops", target(vault("users/alice/prod")), nil},
		"names one error for a row that names nobody and a path":        {"alice", target(nobody, vault("users/alice/prod")), []string{noOwner}},
		"refuses a row without a credential":                            {"alice", target(func(row *registry.ClusterTarget) { row.Spec.CredentialRef = registry.TargetCredentialRef{} }), []string{"spec.credentialRef: Required value: name a secretRef or a vaultRef"}},
		"refuses the name of a cell":                                    {"alice", target(named("prod-eu")), []string{cellName}},
		"names every error at once":                                     {"mallory", target(named("prod-eu")), []string{cellName, mustCover, mayNotGet("hers")}},
		"refuses a creator without a name, who covers no owner":         {"", target(nobody, vault("users//x")), []string{noOwner}},
	} {
		t.Run(sentence, func(t *testing.T) {
			handler := clustertarget.NewHandler(cells{"dev-eu", "prod-eu"}, held, vaultPath, nil)
			resp := handler.Handle(t.Context(), sender(webhooktest.Create(t, raw(t, tc.row)), tc.sender))
			if diff := cmp.Diff(tc.want, webhooktest.Causes(resp)); diff != "" || resp.Allowed != (len(tc.want) == 0) {
				t.Errorf("allowed %v, causes (-want +got):\n%s", resp.Allowed, diff)
			}
		})
	}
}

func TestUpdate(t *testing.T) {
	for sentence, tc := range map[string]struct {
		sender   string
		old, row *registry.ClusterTarget
		want     []string
	}{
		"takes what the owner changes":                                 {"alice", target(), target(account("turns"), queue("turns"), env("prod"), touched), nil},
		"takes what a member of the owning group changes":              {"bob", target(group("payments")), target(group("payments"), queue("turns")), nil},
		"refuses a spec that isn't the sender's":                       {"mallory", target(), target(queue("turns")), []string{notYours}},
		"refuses it from another member where a user owns it":          {"bob", target(), target(queue("turns")), []string{notYours}},
		"refuses a credential that isn't for the sender to change":     {"mallory", target(), target(secret("theirs")), []string{notYours}},
		"takes labels, annotations and finalizers from who may update": {"mallory", target(), target(touched), nil},
		"refuses env from one who isn't the owner":                     {"mallory", target(), target(env("stage"), touched), []string{notYourEnv}},
		"refuses to remove env":                                        {"mallory", target(), target(func(row *registry.ClusterTarget) { row.Labels = nil }), []string{notYourEnv}},
		"takes env from the owner":                                     {"alice", target(), target(env("stage")), nil},
		"takes a spec from one who assigns owners":                     {"gitops", target(), target(queue("turns"), env("stage")), nil},

		"takes a target handed to a group of the owner's":     {"alice", target(), target(group("payments")), nil},
		"takes one taken over from a group that one is in":    {"bob", target(group("payments"), secret("his")), target(user("bob"), secret("his")), nil},
		"refuses one handed to somebody else":                 {"alice", target(), target(user("bob")), []string{mustCoverBoth}},
		"refuses one taken over from somebody else":           {"bob", target(), target(user("bob")), []string{mustCoverBoth, mayNotGet("hers")}},
		"refuses one taken into a group from somebody else":   {"bob", target(), target(group("payments")), []string{mustCoverBoth, mayNotGet("hers")}},
		"takes any owner from one who assigns them":           {"gitops", target(), target(user("bob")), nil},
		"refuses it from who may in the namespace alone":      {"local", target(), target(user("bob")), []string{mustCoverBoth}},
		"refuses a spec from who may in the namespace alone":  {"local", target(), target(queue("turns")), []string{notYours}},
		"refuses to name nobody":                              {"alice", target(), target(nobody), []string{mustCoverBoth}},
		"refuses to name nobody from one who assigns owners":  {"gitops", target(), target(nobody), []string{noOwner}},
		"refuses a system: group":                             {"alice", target(), target(group("system:authenticated")), []string{systemGroup}},
		"refuses a system: group from who assigns owners":     {"gitops", target(), target(group("system:authenticated")), []string{systemGroup}},
		"takes labels on a row that names nobody":             {"mallory", target(nobody), target(nobody, touched), nil},
		"refuses an owner for a row that names nobody":        {"alice", target(nobody), target(), []string{mustCoverBoth}},
		"takes such an owner from one who assigns them":       {"gitops", target(nobody), target(), nil},
		"takes what the owner changes of a target by a group": {"alice", target(group("payments")), target(group("payments"), queue("turns")), nil},

		"takes another Secret that the owner may get":                   {"alice", target(), target(secret("another")), nil},
		"refuses another Secret that the owner may not get":             {"alice", target(), target(secret("his")), []string{mayNotGet("his")}},
		"refuses it from one who assigns owners":                        {"gitops", target(), target(secret("another")), []string{mayNotGet("another")}},
		"refuses another account by a Secret that the sender can't get": {"bob", target(group("payments")), target(group("payments"), account("turns")), []string{mayNotGet("hers")}},
		"refuses another receiver of what pods hand in, likewise":       {"carol", target(group("payments")), target(group("payments"), ingest("https://carol.example")), []string{mayNotGet("hers")}},
		"refuses one taken over by a Secret that the sender can't get":  {"carol", target(group("payments")), target(user("carol")), []string{mayNotGet("hers")}},
		"refuses one given into a group by a Secret likewise":           {"carol", target(user("carol")), target(group("payments")), []string{mayNotGet("hers")}},
		"refuses it from one who assigns owners, likewise":              {"gitops", target(secret("another")), target(secret("another"), user("bob")), []string{mayNotGet("another")}},
		"takes another receiver from who may get the Secret":            {"alice", target(), target(ingest("https://hub.example")), nil},
		"doesn't ask again for a Secret that stays":                     {"bob", target(group("payments")), target(group("payments"), queue("turns")), nil},
		"takes a move from a Secret to Vault":                           {"alice", target(), target(vault("users/alice/prod")), nil},
		"refuses a move to a path of somebody else":                     {"alice", target(), target(vault("users/bob/prod")), []string{notUnder}},
		"refuses a move to a Secret that the owner may not get":         {"alice", target(vault("users/alice/prod")), target(secret("his")), []string{mayNotGet("his")}},
		"refuses a path that isn't under the prefix of the new owner":   {"alice", target(vault("users/alice/prod")), target(group("payments"), vault("users/alice/prod")), []string{notUnder}},
		"takes a path that moves with the owner":                        {"alice", target(vault("users/alice/prod")), target(group("payments"), vault("groups/payments/prod")), nil},
		"leaves a path alone that was there before the rule":            {"alice", target(vault("elsewhere/x")), target(vault("elsewhere/x"), queue("turns")), nil},
		"takes a change of a target that a later cell has the name of":  {"alice", target(named("prod-eu")), target(named("prod-eu"), queue("turns")), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			handler := clustertarget.NewHandler(cells{"dev-eu", "prod-eu"}, held, vaultPath, nil)
			resp := handler.Handle(t.Context(), sender(webhooktest.Update(t, raw(t, tc.old), raw(t, tc.row)), tc.sender))
			if diff := cmp.Diff(tc.want, webhooktest.Causes(resp)); diff != "" || resp.Allowed != (len(tc.want) == 0) {
				t.Errorf("allowed %v, causes (-want +got):\n%s", resp.Allowed, diff)
			}
		})
	}
}

func note(key string, bytes int) edit {
	return func(row *registry.ClusterTarget) {
		row.Annotations = map[string]string{key: strings.Repeat("x", bytes)}
	}
}

func TestMetadataIsBounded(t *testing.T) {
	tooMuch := func(bytes string) []string {
		return []string{"metadata: Forbidden: has " + bytes + " bytes of labels, annotations, finalizers and owner references, and 65536 at most are taken, " +
			"as every replica of the hub reads every target: keep notes elsewhere (kubectl annotate clustertarget NAME KEY- removes one), " +
			"and use kubectl apply --server-side, which keeps no copy of the row in it"}
	}
	large := strings.Repeat("x", 70_000)
	for sentence, tc := range map[string]struct {
		old, row *registry.ClusterTarget
		want     []string
	}{
		"takes what kubectl apply keeps of a large row": {nil, target(note("kubectl.kubernetes.io/last-applied-configuration", 50_000)), nil},
		"takes as much as is allowed":                   {nil, target(note("note", 65_536-len("env")-len("dev")-len("note"))), nil},
		"refuses a byte more":                           {nil, target(note("note", 65_537-len("env")-len("dev")-len("note"))), tooMuch("65537")},
		"refuses it of what kubectl apply keeps":        {nil, target(note("kubectl.kubernetes.io/last-applied-configuration", 70_000)), tooMuch("70054")},
		"refuses a long finalizer":                      {nil, target(func(row *registry.ClusterTarget) { row.Finalizers = []string{large} }), tooMuch("70006")},
		"refuses an owner reference with a long name": {nil, target(func(row *registry.ClusterTarget) {
			row.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: large, UID: "1"}}
		}), tooMuch("70015")},
		"refuses a label more where that is too much":  {target(note("note", 60_000)), target(note("note", 60_000), env(large[:6_000])), tooMuch("66007")},
		"takes a change of a row from before the rule": {target(note("note", 70_000)), target(note("note", 70_000), queue("turns")), nil},
		"takes the hub's own finalizer on a full row": {target(note("note", 65_536-len("env")-len("dev")-len("note"))), target(note("note", 65_536-len("env")-len("dev")-len("note")), func(row *registry.ClusterTarget) {
			row.Finalizers = []string{registry.TargetFinalizer}
		}), nil},
		"takes less of it, though it's still too much":    {target(note("note", 80_000)), target(note("note", 70_000)), nil},
		"refuses more of it":                              {target(note("note", 70_000)), target(note("note", 70_001)), tooMuch("70011")},
		"counts nothing that the API server keeps of who": {nil, target(func(row *registry.ClusterTarget) { row.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: large}} }), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			req := webhooktest.Create(t, raw(t, tc.row))
			if tc.old != nil {
				req = webhooktest.Update(t, raw(t, tc.old), raw(t, tc.row))
			}
			resp := clustertarget.NewHandler(cells{}, held, vaultPath, nil).Handle(t.Context(), sender(req, "alice"))
			if diff := cmp.Diff(tc.want, webhooktest.Causes(resp)); diff != "" || resp.Allowed != (len(tc.want) == 0) {
				t.Errorf("allowed %v, causes (-want +got):\n%s", resp.Allowed, diff)
			}
		})
	}
}

func TestWithoutAVaultEveryVaultRefIsRefused(t *testing.T) {
	handler := clustertarget.NewHandler(cells{}, held, nil, nil)
	resp := handler.Handle(t.Context(), sender(webhooktest.Create(t, raw(t, target(vault("users/alice/prod")))), "alice"))
	want := []string{"spec.credentialRef.vaultRef: Forbidden: this hub has no Vault: name a secretRef"}
	if diff := cmp.Diff(want, webhooktest.Causes(resp)); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

func TestAnEnvThatIsMissingIsWarnedOf(t *testing.T) {
	handler := clustertarget.NewHandler(cells{}, held, vaultPath, nil)
	resp := handler.Handle(t.Context(), sender(webhooktest.Create(t, raw(t, target(env("Prod")))), "alice"))
	want := []string{"metadata.labels[env] is none of prod, production, stage, staging, dev, development: " +
		"the target counts as production, whose credentials live 10m by default and 15m at most"}
	if diff := cmp.Diff(want, resp.Warnings); diff != "" || !resp.Allowed {
		t.Errorf("allowed %v, warnings (-want +got):\n%s", resp.Allowed, diff)
	}
}

func TestAFaultTellsNothing(t *testing.T) {
	const want = "the hub failed to check the row; its log says why under request id request-1"
	for sentence, handler := range map[string]admission.Handler{
		"a broken cache":               clustertarget.NewHandler(broken{}, held, vaultPath, nil),
		"an API server without answer": clustertarget.NewHandler(cells{}, broken{}, vaultPath, nil),
	} {
		for change, req := range map[string]admission.Request{
			"of one who covers the owner": sender(webhooktest.Create(t, raw(t, target())), "alice"),
			"of one who doesn't":          sender(webhooktest.Create(t, raw(t, target(vault("users/alice/x")))), "mallory"),
		} {
			resp := handler.Handle(t.Context(), req)
			if resp.Allowed || resp.Result.Code != http.StatusInternalServerError || resp.Result.Message != want {
				t.Errorf("%s, %s: got %s", sentence, change, webhooktest.Answer(t, resp))
			}
		}
	}
}

// refusals records what was audited.
type refusals []webhook.CredentialRefusal

func (r *refusals) CredentialRefused(refusal webhook.CredentialRefusal) { *r = append(*r, refusal) }

func TestACredentialInARowIsAudited(t *testing.T) {
	var got refusals
	handler := clustertarget.NewHandler(cells{}, held, vaultPath, &got)
	row := target(func(row *registry.ClusterTarget) { row.Annotations = map[string]string{"token": "c4nary"} })
	handler.Handle(t.Context(), sender(webhooktest.Create(t, raw(t, row)), "alice"))
	handler.Handle(t.Context(), sender(webhooktest.Create(t, raw(t, target())), "mallory"))
	want := refusals{{RequestID: "request-1", User: "alice", Kind: "ClusterTarget", Name: "payments", Fields: []string{"metadata.annotations[token]"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("audited (-want +got):\n%s", diff)
	}
}
