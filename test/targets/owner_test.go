package targets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/generated/clientset/versioned"
)

// ownedBy is a row that isn't created yet.
func (b *brought) ownedBy(name string, owner registryv1alpha1.TargetOwner) *registryv1alpha1.ClusterTarget {
	return &registryv1alpha1.ClusterTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.name, Name: name},
		Spec: registryv1alpha1.ClusterTargetSpec{
			Owner: owner, Namespace: b.name,
			CredentialRef: registryv1alpha1.TargetCredentialRef{SecretRef: &registryv1alpha1.TargetSecretRef{Name: b.name + "-kubeconfig"}},
		},
	}
}

// What RBAC lets both do, the owner's rule keeps apart.
func TestARowIsItsOwners(t *testing.T) {
	require(t)
	b := bring(t)
	admin := clientset(t, hub.Hub.Admin)
	_, eve := userOf(t, "eve", "team-b")
	_, gitops := userOf(t, "gitops", "automation")
	for _, name := range []string{"eve", "gitops"} {
		b.mayOwn(admin, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
	}
	ownersMayAssign(t, "gitops")
	_, frank := userOf(t, "frank", "team-c")
	ownersWithoutSecrets(t, b, "frank")
	_, grace := userOf(t, "grace", "team-b")
	ownersOfEverything(t, b, "grace")

	creates := func(client versioned.Interface, name string, owner registryv1alpha1.TargetOwner) error {
		row, err := client.RegistryV1alpha1().ClusterTargets(b.name).Create(t.Context(), b.ownedBy(name, owner), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && owner == (registryv1alpha1.TargetOwner{}) && row.Spec.Owner.User == "" {
			err = errors.New("nobody owns it")
		}
		return err
	}
	row := must(b.hub.RegistryV1alpha1().ClusterTargets(b.name).Create(t.Context(), b.ownedBy("kept", registryv1alpha1.TargetOwner{Group: "team-a"}), metav1.CreateOptions{}))(t)
	shared := must(gitops.RegistryV1alpha1().ClusterTargets(b.name).Create(t.Context(), b.ownedBy("shared", registryv1alpha1.TargetOwner{Group: "team-c"}), metav1.CreateOptions{}))(t)
	changesRow := func(client versioned.Interface, name, patch string) error {
		_, err := client.RegistryV1alpha1().ClusterTargets(b.name).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	changes := func(client versioned.Interface, patch string) error { return changesRow(client, row.Name, patch) }
	const (
		notYou   = "spec.owner: Forbidden: must be you, or a group that you are in; whoever has the verb assign-owner on clustertargets by a ClusterRoleBinding may name anybody"
		notYours = "spec: Forbidden: is for the owner to change, and that is neither you nor a group that you are in; whoever has the verb assign-owner on clustertargets by a ClusterRoleBinding may change it too"
		handed   = "spec.owner: Forbidden: old and new owner must both be you, or a group that you are in; whoever has the verb assign-owner on clustertargets by a ClusterRoleBinding may name anybody"
	)
	noSecret := `spec.credentialRef.secretRef: Forbidden: you must be allowed to get the Secret "` + b.name + `-kubeconfig" in the namespace "` + b.name + `": nobody has the hub read what they can't read themselves`
	for sentence, tt := range map[string]struct {
		err  error
		want string // empty: it's allowed
	}{
		"who names nobody owns it":                          {creates(b.hub, "new", registryv1alpha1.TargetOwner{}), ""},
		"a group that one is in may own it":                 {creates(b.hub, "new", registryv1alpha1.TargetOwner{Group: "team-a"}), ""},
		"nobody registers for another user":                 {creates(eve, "new", registryv1alpha1.TargetOwner{User: "dana"}), notYou},
		"nobody registers for another group":                {creates(eve, "new", registryv1alpha1.TargetOwner{Group: "team-a"}), notYou},
		"who may assign owners registers for anybody":       {creates(gitops, "new", registryv1alpha1.TargetOwner{Group: "team-a"}), ""},
		"who may do everything in the namespace doesn't":    {creates(grace, "new", registryv1alpha1.TargetOwner{Group: "team-a"}), notYou},
		"the hub reads no Secret for who may not get it":    {creates(frank, "new", registryv1alpha1.TargetOwner{}), noSecret},
		"the name of a cell is taken":                       {creates(b.hub, "prod-eu", registryv1alpha1.TargetOwner{}), "metadata.name: Forbidden: is the name of a cell of the fleet: choose another"},
		"the owner changes it":                              {changes(b.hub, `{"spec":{"queue":"measure"}}`), ""},
		"another doesn't":                                   {changes(eve, `{"spec":{"queue":"measure"}}`), notYours},
		"another doesn't take it over":                      {changes(eve, `{"spec":{"owner":{"group":null,"user":"eve"}}}`), handed},
		"nor does who may do everything in the namespace":   {changes(grace, `{"spec":{"owner":{"group":null,"user":"grace"}}}`), handed},
		"nor one of them who may not get the Secret":        {changesRow(frank, shared.Name, `{"spec":{"owner":{"group":null,"user":"frank"}}}`), noSecret},
		"who has pods hand in elsewhere may get the Secret": {changesRow(frank, shared.Name, `{"spec":{"ingestURL":"https://frank.example"}}`), noSecret},
		"one of them changes what aims no credential":       {changesRow(frank, shared.Name, `{"spec":{"queue":"measure"}}`), ""},
		"its owner doesn't give it to who isn't of them":    {changes(b.hub, `{"spec":{"owner":{"group":null,"user":"eve"}}}`), handed},
		"its owner gives it to another that is of them":     {changes(b.hub, `{"spec":{"owner":{"group":null,"user":"dana"}}}`), ""},
		"another doesn't change how long its tokens live":   {changes(eve, `{"metadata":{"labels":{"env":"dev"}}}`), `metadata.labels[env]: Forbidden: sets how long credentials live`},
		"another labels it":                                 {changes(eve, `{"metadata":{"labels":{"seen":"yes"}}}`), ""},
		"who may assign owners hands it over":               {changes(gitops, `{"spec":{"owner":{"group":null,"user":"eve"}}}`), ""},
		"no system group owns it, whoever assigns it":       {changes(gitops, `{"spec":{"owner":{"group":"system:authenticated"}}}`), "a system: group has members that nobody chose"},
		"nobody registers a target for everybody they know": {creates(b.hub, "new", registryv1alpha1.TargetOwner{Group: "system:authenticated"}), "a system: group has members that nobody chose"},
	} {
		t.Run(sentence, func(t *testing.T) {
			switch {
			case tt.want == "" && tt.err != nil:
				t.Errorf("got %v", tt.err)
			case tt.want != "" && (!apierrors.IsInvalid(tt.err) || !strings.Contains(tt.err.Error(), tt.want)):
				t.Errorf("got %v, want %s", tt.err, tt.want)
			}
		})
	}
}

// ownersMayAssign lets somebody name any owner.
func ownersMayAssign(t *testing.T, user string) {
	t.Helper()
	admin, one := clientset(t, hub.Hub.Admin).RbacV1(), metav1.ObjectMeta{Name: "assign-owner-for-" + user}
	must(admin.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: one, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{registryv1alpha1.GroupName}, Resources: []string{"clustertargets"}, Verbs: []string{registryv1alpha1.VerbAssignOwner},
	}}}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = admin.ClusterRoles().Delete(context.Background(), one.Name, metav1.DeleteOptions{}) })
	must(admin.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: one, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: one.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = admin.ClusterRoleBindings().Delete(context.Background(), one.Name, metav1.DeleteOptions{}) })
	untilAllowed(t, clientset(t, hub.Hub.Admin), true, authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: registryv1alpha1.VerbAssignOwner, Group: registryv1alpha1.GroupName, Resource: "clustertargets",
	}})
}

// ownersOfEverything gives somebody the namespace.
func ownersOfEverything(t *testing.T, b *brought, user string) {
	t.Helper()
	ownersRole(t, b, user, []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}})
}

// ownersWithoutSecrets lets somebody register targets and read no Secret.
func ownersWithoutSecrets(t *testing.T, b *brought, user string) {
	t.Helper()
	ownersRole(t, b, user, []rbacv1.PolicyRule{{APIGroups: []string{registryv1alpha1.GroupName}, Resources: []string{"clustertargets"}, Verbs: []string{"*"}}})
}

func ownersRole(t *testing.T, b *brought, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	admin, one := clientset(t, hub.Hub.Admin).RbacV1(), metav1.ObjectMeta{Name: "for-" + user}
	must(admin.Roles(b.name).Create(t.Context(), &rbacv1.Role{ObjectMeta: one, Rules: rules}, metav1.CreateOptions{}))(t)
	must(admin.RoleBindings(b.name).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: one, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: one.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{}))(t)
	untilAllowed(t, clientset(t, hub.Hub.Admin), true, authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: b.name, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: rules[0].Resources[0],
	}})
}

func TestSecretsThatTheHubWouldNotTakeAreRefused(t *testing.T) {
	require(t)
	b := bring(t)
	for sentence, tt := range map[string]struct {
		data map[string][]byte
		want string
	}{
		"of another key": {map[string][]byte{"config": b.kubeconfig(b.token)}, "data: Forbidden: must have the key kubeconfig and no other"},
		"of a key more":  {map[string][]byte{"kubeconfig": b.kubeconfig(b.token), "token": []byte(b.token)}, "data: Forbidden: must have the key kubeconfig and no other"},
		"of no key":      {nil, "data[kubeconfig]: Required value: the kubeconfig is missing"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := b.core.CoreV1().Secrets(b.name).Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "refused"}, Type: registryv1alpha1.SecretTypeKubeconfig, Data: tt.data,
			}, metav1.CreateOptions{})
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if err != nil && traceIn(err.Error(), traceParts(b.token)) {
				t.Error("the answer has a part of the token")
			}
		})
	}
}

// A cell that is registered after a target of its name is the operator's right:
// the target works on, and says so.
func TestACellOfATargetsNameShows(t *testing.T) {
	require(t)
	b := bring(t)
	b.register(nil)
	conflicts := func(want metav1.ConditionStatus, reason string) {
		t.Helper()
		eventually(t, fmt.Sprintf("NameConflict is %s", want), func(context.Context) error {
			c := meta.FindStatusCondition(b.row().Status.Conditions, registryv1alpha1.ConditionNameConflict)
			if c == nil || c.Status != want || c.Reason != reason {
				return fmt.Errorf("it's %+v", c)
			}
			return nil
		})
	}
	conflicts(metav1.ConditionFalse, registryv1alpha1.ReasonNameFree)
	cluster := acme().Cluster() // no cell is there: nothing trusts the hub
	cluster.Name, cluster.Spec.State, cluster.Spec.Reporter = b.name, registryv1alpha1.StateDraining, nil
	clusters := hub.Admin.RegistryV1alpha1().Clusters()
	must(clusters.Create(t.Context(), cluster, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = clusters.Delete(context.Background(), b.name, metav1.DeleteOptions{}) })
	conflicts(metav1.ConditionTrue, registryv1alpha1.ReasonNameTaken)
	if err := clusters.Delete(t.Context(), b.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	conflicts(metav1.ConditionFalse, registryv1alpha1.ReasonNameFree)
}
