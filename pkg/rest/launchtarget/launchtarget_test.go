package launchtarget

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/policy"
	"cellcast.io/cellcast/pkg/registry"
)

// brought are the targets that a replica knows.
type brought []*registryv1alpha1.ClusterTarget

func (b brought) List(context.Context) []*registryv1alpha1.ClusterTarget { return b }

func cluster(name string, state registryv1alpha1.ClusterState, region string) *registryv1alpha1.Cluster {
	return &registryv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}},
		Spec:       registryv1alpha1.ClusterSpec{State: state},
	}
}

func row(namespace, name string, uid types.UID, owner registryv1alpha1.TargetOwner) *registryv1alpha1.ClusterTarget {
	return &registryv1alpha1.ClusterTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, Generation: 1, Labels: map[string]string{"region": "home"}},
		Spec:       registryv1alpha1.ClusterTargetSpec{Owner: owner, Namespace: "ns-of-" + name},
		Status: registryv1alpha1.ClusterTargetStatus{ObservedGeneration: 1, State: registryv1alpha1.TargetReady,
			Capabilities: []registryv1alpha1.TargetCapability{registryv1alpha1.CapabilityAgentTurns, registryv1alpha1.CapabilityTokens}},
	}
}

// newStorage has four cells, of which developers reach three, and four brought
// targets, of which one is dana's and two are her group's.
func newStorage(t *testing.T) *Storage {
	t.Helper()
	compiler, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	p, errs := compiler.Compile(&registryv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "developers"},
		Spec: registryv1alpha1.PlacementPolicySpec{
			Subjects:        []registryv1alpha1.PolicySubject{{Groups: []string{"developers"}}},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}},
			Credential:      registryv1alpha1.CredentialScope{Namespace: "dev", ServiceAccountName: "deployer"},
		},
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	view := &registry.View{
		Clusters: []*registryv1alpha1.Cluster{
			cluster("eu-1", registryv1alpha1.StateLive, "eu"), cluster("eu-2", registryv1alpha1.StateDark, "eu"),
			cluster("eu-3", registryv1alpha1.StateDraining, "eu"), cluster("us-1", registryv1alpha1.StateLive, "us"),
		},
		Policies: policy.NewSet([]*policy.Policy{p}),
	}
	ml := registryv1alpha1.TargetOwner{Group: "ml"}
	bound := row("team-b", "bound", "u-2", ml)
	bound.Spec.Bindings = registryv1alpha1.TargetBindings{Playbooks: []string{"train"}, Repositories: []string{"acme/ml", "acme/data"}}
	failed := row("team-a", "gpu", "u-3", ml)
	failed.Status = registryv1alpha1.ClusterTargetStatus{ObservedGeneration: 1, State: registryv1alpha1.TargetFailed, Failing: "Namespace: ns-of-gpu isn't there"}
	return &Storage{
		View: func() *registry.View { return view },
		Targets: brought{bound, row("dana", "own", "u-1", registryv1alpha1.TargetOwner{User: "dana"}), failed,
			row("team-c", "theirs", "u-4", registryv1alpha1.TargetOwner{Group: "web"})},
		SeesAll: func(context.Context) bool { return false },
		Now:     time.Now,
	}
}

var dana = &user.DefaultInfo{Name: "dana", Groups: []string{"developers", "ml"}}

func (s *Storage) ask(t *testing.T, u user.Info, options *metainternalversion.ListOptions) []cellcastv1alpha1.LaunchTarget {
	t.Helper()
	got, err := s.List(genericapirequest.WithUser(t.Context(), u), options)
	if err != nil {
		t.Fatal(err)
	}
	return got.(*cellcastv1alpha1.LaunchTargetList).Items
}

func names(items []cellcastv1alpha1.LaunchTarget) []string {
	out := []string{}
	for _, item := range items {
		out = append(out, item.Name)
	}
	return out
}

func TestEachCallerSeesWhatItMayLaunchOnto(t *testing.T) {
	eu, home := map[string]string{"region": "eu"}, map[string]string{"region": "home"}
	cell := func(name, state, reason string) cellcastv1alpha1.LaunchTarget {
		return cellcastv1alpha1.LaunchTarget{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: eu}, Status: cellcastv1alpha1.LaunchTargetStatus{
			Kind: "Cluster", State: state, Launchable: reason == "", Reason: reason, Policies: []string{"developers"},
			SecretRule: "A launch may use any secret that you may get.",
		}}
	}
	want := []cellcastv1alpha1.LaunchTarget{
		cell("eu-1", "LIVE", ""),
		cell("eu-2", "DARK", "the cell is DARK and takes no launch"),
		cell("eu-3", "DRAINING", "the cell is DRAINING and takes no launch; what runs there goes on"),
		{ObjectMeta: metav1.ObjectMeta{Name: "target:u-1", Labels: home}, Status: cellcastv1alpha1.LaunchTargetStatus{
			Kind: "ClusterTarget", Target: &cellcastv1alpha1.LaunchTargetRow{Namespace: "dana", Name: "own"}, State: "Ready", Launchable: true,
			Owner: "user:dana", Capabilities: []string{"AgentTurns", "Tokens"},
			SecretRule: "Whoever administers namespace ns-of-own on the target's cluster can read every secret that a pod there gets. A launch may only use secrets that you own, or that user:dana owns.",
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: "target:u-3", Labels: home}, Status: cellcastv1alpha1.LaunchTargetStatus{
			Kind: "ClusterTarget", Target: &cellcastv1alpha1.LaunchTargetRow{Namespace: "team-a", Name: "gpu"}, State: "Failed",
			Reason: "it is Failed: Namespace: ns-of-gpu isn't there", Owner: "group:ml",
			SecretRule: "Whoever administers namespace ns-of-gpu on the target's cluster can read every secret that a pod there gets. A launch may only use secrets that you own, or that group:ml owns.",
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: "target:u-2", Labels: home}, Status: cellcastv1alpha1.LaunchTargetStatus{
			Kind: "ClusterTarget", Target: &cellcastv1alpha1.LaunchTargetRow{Namespace: "team-b", Name: "bound"}, State: "Ready", Launchable: true,
			Owner: "group:ml", Capabilities: []string{"AgentTurns", "Tokens"},
			Playbooks: []string{"train"}, Repositories: []string{"acme/ml", "acme/data"},
			SecretRule: "Whoever administers namespace ns-of-bound on the target's cluster can read every secret that a pod there gets. A launch may only use secrets that you own, or that group:ml owns.",
		}},
	}
	s := newStorage(t)
	if diff := cmp.Diff(want, s.ask(t, dana, nil)); diff != "" {
		t.Errorf("dana's list (-want +got):\n%s", diff)
	}
	if got := s.ask(t, &user.DefaultInfo{Name: "nobody"}, nil); len(got) != 0 {
		t.Errorf("a stranger may launch onto %v", names(got))
	}
	s.SeesAll = func(context.Context) bool { return true }
	got := s.ask(t, &user.DefaultInfo{Name: "ops"}, nil)
	if diff := cmp.Diff([]string{"eu-1", "eu-2", "eu-3", "us-1"}, names(got)); diff != "" {
		t.Errorf("who sees every cell sees no target of others (-want +got):\n%s", diff)
	}
	for _, item := range got {
		if item.Status.Launchable || item.Status.Reason != "no PlacementPolicy permits you this cell" {
			t.Errorf("%s: %+v", item.Name, item.Status)
		}
	}
}

func TestATargetOfWhichNothingIsKnownIsProbing(t *testing.T) {
	s := newStorage(t)
	fresh := row("dana", "own", "u-1", registryv1alpha1.TargetOwner{User: "dana"})
	fresh.Status = registryv1alpha1.ClusterTargetStatus{}
	s.Targets = brought{fresh}
	got := s.ask(t, &user.DefaultInfo{Name: "dana"}, nil)
	if len(got) != 1 || got[0].Status.State != "Probing" || got[0].Status.Launchable || got[0].Status.Reason != "it hasn't been probed yet" {
		t.Errorf("got %+v", got)
	}
}

func TestSelectorsLeaveOutWhatIsForOthers(t *testing.T) {
	for selector, want := range map[string][]string{
		"":                                  {"eu-1", "eu-2", "eu-3", "target:u-1", "target:u-3", "target:u-2"},
		"playbook=train":                    {"eu-1", "eu-2", "eu-3", "target:u-1", "target:u-3", "target:u-2"},
		"playbook=review":                   {"eu-1", "eu-2", "eu-3", "target:u-1", "target:u-3"},
		"repository=acme/data":              {"eu-1", "eu-2", "eu-3", "target:u-1", "target:u-3", "target:u-2"},
		"repository==acme/web":              {"eu-1", "eu-2", "eu-3", "target:u-1", "target:u-3"},
		"playbook=train,repository=a/b":     {"eu-1", "eu-2", "eu-3", "target:u-1", "target:u-3"},
		"metadata.name=target:u-2":          {"target:u-2"},
		"metadata.name!=eu-1,playbook=none": {"eu-2", "eu-3", "target:u-1", "target:u-3"},
		"metadata.name=target:u-4":          {},
	} {
		t.Run(selector, func(t *testing.T) {
			parsed, err := fields.ParseSelector(selector)
			if err != nil {
				t.Fatal(err)
			}
			got := newStorage(t).ask(t, dana, &metainternalversion.ListOptions{FieldSelector: parsed})
			if diff := cmp.Diff(want, names(got)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
	home, err := labels.Parse("region=home")
	if err != nil {
		t.Fatal(err)
	}
	got := newStorage(t).ask(t, dana, &metainternalversion.ListOptions{LabelSelector: home})
	if diff := cmp.Diff([]string{"target:u-1", "target:u-3", "target:u-2"}, names(got)); diff != "" {
		t.Errorf("by label (-want +got):\n%s", diff)
	}
}

func TestASelectorThatCantBeAnsweredIsRefused(t *testing.T) {
	for selector, want := range map[string]string{
		"playbook!=train":       "playbook can't be selected by !=: a target that is bound to nothing is for every playbook",
		"repository!=acme/ml":   "repository can't be selected by !=: a target that is bound to nothing is for every repository",
		"status.owner=group:ml": `"status.owner" is not a known field selector: only "metadata.name", "playbook", "repository"`,
	} {
		t.Run(selector, func(t *testing.T) {
			parsed, err := fields.ParseSelector(selector)
			if err != nil {
				t.Fatal(err)
			}
			_, err = newStorage(t).List(genericapirequest.WithUser(t.Context(), dana), &metainternalversion.ListOptions{FieldSelector: parsed})
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// An API server asks its scheme which fields of a kind can be selected by.
func TestTheSchemeLetsTheFieldsThrough(t *testing.T) {
	kind := cellcastv1alpha1.SchemeGroupVersion.WithKind("LaunchTarget")
	scheme := runtime.NewScheme()
	if err := scheme.AddFieldLabelConversionFunc(kind, ConvertFieldLabel); err != nil {
		t.Fatal(err)
	}
	for label, known := range map[string]bool{"metadata.name": true, "playbook": true, "repository": true, "metadata.namespace": false, "owner": false} {
		got, value, err := scheme.ConvertFieldLabel(kind, label, "x")
		if (err == nil) != known || known && (got != label || value != "x") {
			t.Errorf("%s: got %q, %q, %v", label, got, value, err)
		}
	}
}

func TestTheTableSaysWhereAndWhetherAndWhose(t *testing.T) {
	s := newStorage(t)
	list, err := s.List(genericapirequest.WithUser(t.Context(), dana), nil)
	if err != nil {
		t.Fatal(err)
	}
	table, err := s.ConvertToTable(t.Context(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	var narrow, wide []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			narrow = append(narrow, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
	}
	if diff := cmp.Diff([]string{"Name", "Kind", "Where", "State", "Launchable", "Owner"}, narrow); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Capabilities", "Secrets"}, wide); diff != "" {
		t.Errorf("wide columns (-want +got):\n%s", diff)
	}
	if len(table.Rows) != 6 {
		t.Fatalf("%d rows", len(table.Rows))
	}
	want := []any{"eu-1", "Cluster", "eu-1", "LIVE", true, "-", "-", "A launch may use any secret that you may get."}
	if diff := cmp.Diff(want, table.Rows[0].Cells); diff != "" {
		t.Errorf("a cell (-want +got):\n%s", diff)
	}
	want = []any{"target:u-3", "ClusterTarget", "team-a/gpu", "Failed", false, "group:ml", "-",
		"Whoever administers namespace ns-of-gpu on the target's cluster can read every secret that a pod there gets. A launch may only use secrets that you own, or that group:ml owns."}
	if diff := cmp.Diff(want, table.Rows[4].Cells); diff != "" {
		t.Errorf("a brought target (-want +got):\n%s", diff)
	}
}
