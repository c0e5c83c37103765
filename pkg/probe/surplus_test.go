package probe

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"

	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
)

const (
	takenOver  = " Whoever took over the hub could do that too: bind its ServiceAccount to the contract's Role alone. The command that the probe prints shows what else it's bound to."
	incomplete = " The target says that its list is incomplete, so there may be more."
	bindings   = "kubectl --kubeconfig kubeconfig --namespace team get rolebindings,clusterrolebindings --output wide"
)

func rule(verbs, groups, resources string, names ...string) authorizationv1.ResourceRule {
	return authorizationv1.ResourceRule{Verbs: strings.Split(verbs, ","), APIGroups: strings.Split(groups, ","),
		Resources: strings.Split(resources, ","), ResourceNames: names}
}

func TestExcessPermissions(t *testing.T) {
	tests := map[string]struct {
		rules   []authorizationv1.ResourceRule
		paths   []string // that it may get and post
		limited bool
		message string // of a warning, before takenOver; empty: passed
		items   []string
	}{
		"the contract alone":                    {},
		"the contract alone, of a partial list": {limited: true},
		"other verbs on a resource of the contract": {rules: []authorizationv1.ResourceRule{rule("get,patch,update", "", "pods")},
			message: "In namespace team the credential may do more than the hub needs: one kind of right.", items: []string{"patch, update on pods"}},
		"other resources, also of a subresource": {rules: []authorizationv1.ResourceRule{rule("create", "", "pods/exec"), rule("get,list", "apps", "deployments")},
			message: "In namespace team the credential may do more than the hub needs: 2 kinds of rights.", items: []string{"get, list on deployments.apps", "create on pods/exec"}},
		"the rules of one resource as one": {rules: []authorizationv1.ResourceRule{rule("list", "apps", "deployments"), rule("get", "apps", "deployments")},
			message: "In namespace team the credential may do more than the hub needs: one kind of right.", items: []string{"get, list on deployments.apps"}},
		"all Secrets, where one pull secret would do": {rules: []authorizationv1.ResourceRule{rule("get", "", "secrets")},
			message: "In namespace team the credential may do more than the hub needs: one kind of right.", items: []string{"get on secrets"}},
		"another Secret beside the pull secret": {rules: []authorizationv1.ResourceRule{rule("get", "", "secrets", "pull", "db")},
			message: "In namespace team the credential may do more than the hub needs: one kind of right.", items: []string{"get on secrets pull db"}},
		"tokens of every ServiceAccount": {rules: []authorizationv1.ResourceRule{rule("create", "", "serviceaccounts/token")},
			message: "In namespace team the credential may do more than the hub needs: one kind of right.", items: []string{"create on serviceaccounts/token"}},
		"all verbs": {rules: []authorizationv1.ResourceRule{rule("*", "", "pods")},
			message: "In namespace team the credential may do more than the hub needs: one kind of right.", items: []string{"* on pods"}},
		"an administrator": {rules: []authorizationv1.ResourceRule{rule("*", "*", "*")}, limited: true,
			message: "The credential may do everything in namespace team: it's an administrator of the namespace.", items: []string{"* on *.*"}},
		"paths beyond discovery": {paths: []string{"/metrics"},
			message: "In namespace team the credential may do more than the hub needs: one kind of right.", items: []string{"get, post on /metrics"}},
		"texts that a terminal would act on": {rules: []authorizationv1.ResourceRule{rule("get\x1b[2J", "", "a\nb")},
			message: "In namespace team the credential may do more than the hub needs: one kind of right.", items: []string{"get [2J on a b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, tr *trial) {
				tr.target.rules.ResourceRules = append(tr.target.rules.ResourceRules, tc.rules...)
				tr.target.rules.Incomplete = tc.limited
				if tc.paths != nil {
					tr.target.rules.NonResourceRules = append(tr.target.rules.NonResourceRules,
						authorizationv1.NonResourceRule{Verbs: []string{"get", "post"}, NonResourceURLs: tc.paths})
				}
				r := tr.run()
				c := checkOf(t, r, registryv1alpha1.CheckExcess)
				result, message, remedy := registryv1alpha1.CheckPassed, "In namespace team the credential may do nothing beyond the contract.", ""
				if tc.message != "" {
					result, message, remedy = registryv1alpha1.CheckWarning, tc.message+takenOver, bindings
				}
				if tc.limited {
					message += incomplete
				}
				if c.Result != result || c.Message != message || c.Remedy != remedy {
					t.Errorf("%s: %s\nremedy %s, want %s: %s\nremedy %s", c.Result, c.Message, c.Remedy, result, message, remedy)
				}
				var items []string
				for _, i := range c.Items {
					items = append(items, i.Name)
				}
				if diff := cmp.Diff(tc.items, items); diff != "" {
					t.Errorf("items (-want +got):\n%s", diff)
				}
				if r.State != registryv1alpha1.TargetReady {
					t.Errorf("state %s", r.State)
				}
			})
		})
	}
}

func TestExcessIsBounded(t *testing.T) {
	many := func(prefix string, n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = fmt.Sprintf("%s%04d", prefix, i)
		}
		return strings.Join(words, ",")
	}
	repeated := func(s string, n int) []string { return strings.Split(strings.Repeat(","+s, n)[1:], ",") }
	tests := map[string]struct {
		rule authorizationv1.ResourceRule
		last string // item
	}{
		"200 resources":                           {rule("get", "", many("r", 200)), "and 137 more"},
		"millions of resources":                   {rule("get", many("g", 20000), many("r", 20000)), "and 449 more"},
		"millions of resources without a verb":    {authorizationv1.ResourceRule{APIGroups: repeated("g", 50000), Resources: repeated("r", 50000)}, ""},
		"a long list of verbs":                    {rule(many("v", 100000), "", "pods"), ""},
		"a name that is 1 MiB long":               {rule(many("v", 10000), "", strings.Repeat("r", 1<<20)), ""},
		"a long list of the one name that it may": {rule(strings.Join(repeated("get", 1<<14), ","), "", "secrets", repeated("pull", 1_000_000)...), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := newTrial(t).spec.Target
			began := time.Now()
			s := surplusOf(authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{tc.rule}}, allowed(spec))
			c := warning("").with(s.items()).check(registryv1alpha1.CheckExcess)
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("it took %s", took)
			}
			if len(c.Items) > 64 || tc.last != "" && c.Items[len(c.Items)-1].Name != tc.last {
				t.Errorf("%d items, the last %+v", len(c.Items), c.Items[max(0, len(c.Items)-1):])
			}
			for _, i := range c.Items {
				if len(i.Name) > 512 {
					t.Errorf("an item has %d bytes", len(i.Name))
				}
			}
		})
	}
}

// A list of 256 KiB can name one text in many thousand rights.
func TestATextOfTheRightsIsQuotedOnce(t *testing.T) {
	long := func(n int, prefix string) []string {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = prefix + strings.Repeat("x", 900) + fmt.Sprint(i)
		}
		return texts
	}
	for name, r := range map[string]authorizationv1.ResourceRule{
		"verbs that look the same once they are cut":   {Verbs: long(64, "v"), APIGroups: []string{""}, Resources: strings.Split(strings.Repeat(",r", 256)[1:], ",")},
		"groups and resources that nothing is said of": {APIGroups: long(128, "g"), Resources: long(128, "r"), ResourceNames: long(8, "n")},
		"groups and resources that look the same":      {Verbs: []string{"get"}, APIGroups: long(64, "g"), Resources: long(128, "r"), ResourceNames: long(8, "n")},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s := surplusOf(authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{r}}, nil)
			runtime.ReadMemStats(&after)
			if s.steps < maxSteps-1 {
				t.Errorf("only %d rights were gone through", s.steps)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 32 {
				t.Errorf("%d MiB were written for %d rights", took, s.steps)
			}
		})
	}
	t.Run("paths", func(t *testing.T) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := surplusOf(authorizationv1.SubjectRulesReviewStatus{NonResourceRules: []authorizationv1.NonResourceRule{
			{Verbs: long(128, "v"), NonResourceURLs: long(128, "/")}}}, nil)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 32 {
			t.Errorf("%d MiB were written for %d rights", took, s.steps)
		}
	})
}
