package cli_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	cellcastv1alpha1 "cellcast.io/cellcast/apis/cellcast/v1alpha1"
	registryv1alpha1 "cellcast.io/cellcast/apis/registry/v1alpha1"
	"cellcast.io/cellcast/pkg/refusal"
)

// probed makes the owner's hub probe target eu: each time that the client waits,
// the next step is what the row says.
func (o *owner) probed(joined bool, steps ...registryv1alpha1.ClusterTargetStatus) {
	o.hub.other = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/apis/cellcast.io/v1alpha1/namespaces/payments/clustertargets/eu/probe" {
			http.NotFound(w, r)
			return
		}
		stored(w, object{"apiVersion": "cellcast.io/v1alpha1", "kind": "TargetProbe", "status": object{"run": "run-2", "joined": joined}})
	})
	set := func(s registryv1alpha1.ClusterTargetStatus) {
		row := &registryv1alpha1.ClusterTarget{
			TypeMeta:   metav1.TypeMeta{APIVersion: "registry.cellcast.io/v1alpha1", Kind: "ClusterTarget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "eu", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "noise"}}},
			Spec:       registryv1alpha1.ClusterTargetSpec{Namespace: "shop"}, Status: s,
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(row)
		if err != nil {
			o.t.Fatal(err)
		}
		o.hub.mu.Lock()
		defer o.hub.mu.Unlock()
		o.hub.objects[hubRow] = content
	}
	set(steps[0])
	o.sleep = func() {
		if len(steps) > 1 {
			steps = steps[1:]
			set(steps[0])
		}
	}
}

// progress is a status of run-2 with so many items ended.
func progress(state registryv1alpha1.TargetState, over bool, checks ...registryv1alpha1.TargetCheck) registryv1alpha1.ClusterTargetStatus {
	s := registryv1alpha1.ClusterTargetStatus{State: state, Checks: checks,
		Run: &registryv1alpha1.ProbeRun{ID: "run-2", Reason: registryv1alpha1.ProbeRequested, StartedAt: metav1.NewTime(now)}}
	if over {
		s.Run.FinishedAt = &metav1.Time{Time: now}
	}
	return s
}

func passed(name registryv1alpha1.TargetCheckName, message string) registryv1alpha1.TargetCheck {
	return registryv1alpha1.TargetCheck{Name: name, Result: registryv1alpha1.CheckPassed, Message: message}
}

var (
	credentialPassed = passed(registryv1alpha1.CheckCredential, "it's of the closed form")
	reachablePassed  = passed(registryv1alpha1.CheckReachable, "")
	permissionFailed = registryv1alpha1.TargetCheck{Name: registryv1alpha1.CheckPermissions, Result: registryv1alpha1.CheckFailed,
		Message: "1 of 9 is missing", Remedy: "kubectl apply -f role.yaml",
		Items: []registryv1alpha1.TargetCheckItem{{Name: "delete pods", Result: registryv1alpha1.CheckFailed}}}
	// earlierRun is what the row says of the run before.
	earlierRun = func() registryv1alpha1.ClusterTargetStatus {
		s := progress(registryv1alpha1.TargetFailed, true, permissionFailed)
		s.Run.ID = "run-1"
		return s
	}()
)

func TestProbeShowsEachItemAsItEnds(t *testing.T) {
	o := newOwner(t)
	ready := progress(registryv1alpha1.TargetReady, true, credentialPassed, reachablePassed)
	ready.Capabilities = []registryv1alpha1.TargetCapability{registryv1alpha1.CapabilityAgentTurns, registryv1alpha1.CapabilityTokens}
	o.probed(false, earlierRun, progress(registryv1alpha1.TargetProbing, false, credentialPassed),
		progress(registryv1alpha1.TargetProbing, true, credentialPassed, reachablePassed), ready)
	diff(t, "the answer", answerOf{0, "Passed   Credential: it's of the closed form\nPassed   Reachable\nReady, for AgentTurns, Tokens.\n", ""}, o.ask("probe", "eu"))
	diff(t, "the waits", []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond}, o.clock.slept)
}

func TestProbeDrawsOnATerminal(t *testing.T) {
	o := newOwner(t)
	o.window = func() (int, int) { return 80, 24 }
	o.probed(true, earlierRun, progress(registryv1alpha1.TargetReady, true, credentialPassed))
	got := o.ask("probe", "eu")
	diff(t, "what is said", "A probe is under way already: this is that one.\n", got.err)
	if !strings.HasPrefix(got.out, "waiting  Credential\n") || !strings.HasSuffix(got.out, "\x1b[12A\r\x1b[JPassed   Credential: it's of the closed form\nReady.\n") {
		t.Errorf("got %q", got.out)
	}
}

func TestTheExitCodeOfAProbeIsTheState(t *testing.T) {
	wants := map[registryv1alpha1.TargetState]int{
		registryv1alpha1.TargetReady: 0, registryv1alpha1.TargetFailed: 3, registryv1alpha1.TargetCredentialRejected: 3,
		registryv1alpha1.TargetUnreachable: 4, registryv1alpha1.TargetCredentialUnavailable: 4, registryv1alpha1.TargetProbing: 4,
	}
	for _, state := range registryv1alpha1.TargetStates() {
		t.Run(string(state), func(t *testing.T) {
			want, known := wants[state]
			if !known {
				t.Fatal("the table lacks this state")
			}
			o := newOwner(t)
			s := progress(state, true, permissionFailed)
			s.Failing = "Permissions: 1 of 9 is missing"
			o.probed(false, s)
			got := o.ask("probe", "eu")
			if got.code != want {
				t.Errorf("got %+v, want %d", got, want)
			}
			list := "Failed   Permissions: 1 of 9 is missing\n         Failed   delete pods\n         kubectl apply -f role.yaml\n"
			if !strings.HasPrefix(got.out, list) {
				t.Errorf("got %s", got.out)
			}
			if want != 0 && state != registryv1alpha1.TargetProbing && !strings.HasPrefix(got.err, "Error: target payments/eu is "+string(state)+": Permissions: 1 of 9 is missing\n") {
				t.Errorf("got %s", got.err)
			}
		})
	}
}

func TestWhatMendsATargetIsNamed(t *testing.T) {
	secret := func(name string) object { return object{"secretRef": object{"name": name}} }
	for name, test := range map[string]struct {
		state registryv1alpha1.TargetState
		ref   object
		ended []registryv1alpha1.TargetCheck
		next  string
	}{
		"an item failed": {registryv1alpha1.TargetFailed, secret("eu-kubeconfig"), nil,
			"Mend what the list says, and run `kubectl cellcast probe eu -n payments --kubeconfig DIR/hub.kubeconfig` again.\n"},
		"the token of a Secret that register can have made": {registryv1alpha1.TargetCredentialRejected, secret("eu-kubeconfig"), rejectedAt(registryv1alpha1.CheckAuthenticated),
			"The target's API refuses the token: run the command of the item Authenticated, with this at its end, which names the hub:\n  --hub-kubeconfig DIR/hub.kubeconfig\n"},
		"that token, where no item has the command": {registryv1alpha1.TargetCredentialRejected, secret("eu-kubeconfig"), []registryv1alpha1.TargetCheck{permissionFailed},
			"The target's API refuses the token. This prints the command that registers another:\n  kubectl cellcast probe eu -n payments --kubeconfig DIR/hub.kubeconfig\n"},
		"the token of another Secret": {registryv1alpha1.TargetCredentialRejected, secret("mine"), rejectedAt(registryv1alpha1.CheckAuthenticated),
			"The target's API refuses the token. Put a kubeconfig of the closed form, FILE, with another into Secret mine:\n" +
				"  kubectl create secret generic mine -n payments --type=cellcast.io/kubeconfig --from-file=kubeconfig=FILE --dry-run=client -o yaml | kubectl replace -f - --kubeconfig DIR/hub.kubeconfig\n"},
		"the token in Vault": {registryv1alpha1.TargetCredentialRejected, object{"vaultRef": object{"path": "users/jo/my eu", "key": "eu"}}, nil,
			"The target's API refuses the token. Put a kubeconfig of the closed form, FILE, with another into Vault, where MOUNT is the KV engine of the hub:\n" +
				"  vault kv patch -mount=MOUNT 'users/jo/my eu' eu=@FILE\n"},
		"a Secret that can't be read": {registryv1alpha1.TargetCredentialUnavailable, secret("mine"), nil,
			"The hub tries again by itself. If it lasts, do what the item Credential says.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			o.probed(false, progress(test.state, true, append([]registryv1alpha1.TargetCheck{credentialPassed}, test.ended...)...))
			o.hub.at(hubRow)["spec"].(object)["credentialRef"] = test.ref
			got := o.ask("probe", "eu")
			diff(t, "what is said", "Error: target payments/eu is "+string(test.state)+"\n"+test.next, got.err)
		})
	}
}

// rejectedAt is the item at which the target's API refused the token.
func rejectedAt(name registryv1alpha1.TargetCheckName) []registryv1alpha1.TargetCheck {
	return []registryv1alpha1.TargetCheck{{Name: name, Result: registryv1alpha1.CheckFailed,
		Remedy: "kubectl --kubeconfig kubeconfig delete secret cellcast-eu-token && cellcast target register eu -f kubeconfig --create-credential"}}
}

// Where no kubeconfig was named, kubectl goes where this went.
func TestWhatMendsATargetNamesNoHubThatNobodyNamed(t *testing.T) {
	o := newOwner(t)
	t.Setenv("KUBECONFIG", filepath.Join(o.dir, "hub.kubeconfig"))
	o.probed(false, progress(registryv1alpha1.TargetCredentialRejected, true, rejectedAt(registryv1alpha1.CheckPermissions)...))
	o.hub.at(hubRow)["spec"].(object)["credentialRef"] = object{"secretRef": object{"name": "eu-kubeconfig"}}
	const says = "Error: target payments/eu is CredentialRejected\nThe target's API refuses the token: run the command of the item Permissions"
	got := o.run("probe", "eu")
	diff(t, "what is said", says+".\n", got.err)
	if !strings.HasSuffix(got.out, "--create-credential\nThe file kubeconfig is your own for the target.\n") {
		t.Errorf("the list is\n%s", got.out)
	}
	diff(t, "what is said of a context", says+", with this at its end, which names the hub:\n  --hub-context hub\n", o.run("probe", "eu", "--context", "hub").err)
}

func TestAProbeThatGoesOnSaysWhatIsRunning(t *testing.T) {
	for name, test := range map[string]struct {
		step registryv1alpha1.ClusterTargetStatus
		err  string
	}{
		"in the middle": {progress(registryv1alpha1.TargetProbing, false, credentialPassed, reachablePassed),
			"Error: the probe of payments/eu goes on after 10s: Authenticated is running, Namespace, Permissions, ExcessPermissions, PullSecrets, SigningKeys, Tokens, LocalQueue, SandboxResource, Canary to come\n" +
				"Look again with the same command: it joins the probe that is under way.\n"},
		"before it begins": {earlierRun, "Error: the hub hasn't begun the probe of payments/eu in 10s\n" +
			"Ask again; if it lasts, the platform team should see whether a replica of the hub holds the lease.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			o.probed(false, test.step)
			got := o.ask("probe", "eu", "--timeout", "10s")
			if got.code != 4 || got.err != test.err || strings.Contains(got.out, "1 of 9") {
				t.Errorf("got %+v, want %s", got, test.err)
			}
		})
	}
}

func TestARunThatTakesTheProbesPlaceIsFollowed(t *testing.T) {
	o := newOwner(t)
	resumed := progress(registryv1alpha1.TargetReady, true, credentialPassed)
	resumed.Run.ID, resumed.Run.Reason = "run-3", registryv1alpha1.ProbeResumed
	o.probed(false, progress(registryv1alpha1.TargetProbing, false, credentialPassed), resumed)
	diff(t, "the answer", answerOf{0, "Passed   Credential: it's of the closed form\nPassed   Credential: it's of the closed form\nReady.\n",
		"Another run has taken its place: Resumed.\n"}, o.ask("probe", "eu"))
}

func TestProbeAsJSONIsTheRow(t *testing.T) {
	for state, code := range map[registryv1alpha1.TargetState]int{registryv1alpha1.TargetReady: 0, registryv1alpha1.TargetFailed: 3} {
		o := newOwner(t)
		o.probed(true, progress(registryv1alpha1.TargetProbing, false), progress(state, true, credentialPassed))
		got := o.ask("probe", "eu", "-o", "json")
		var row registryv1alpha1.ClusterTarget
		if err := json.Unmarshal([]byte(got.out), &row); err != nil || got.code != code || row.Kind != "ClusterTarget" || row.Status.State != state || row.ManagedFields != nil {
			t.Errorf("%v: got %+v", err, got)
		}
	}
}

func TestProbeOfNothing(t *testing.T) {
	o := newOwner(t)
	o.hub.other = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, refusal.New(refusal.NotOwner, "target payments/eu is user:jo's").Status())
	})
	diff(t, "of another's", answerOf{3, "", "Error: NotOwner: target payments/eu is user:jo's\n" + refusal.NotOwner.Meaning().Next + "\n"}, o.ask("probe", "eu"))

	o = newOwner(t)
	o.probed(false, earlierRun)
	delete(o.hub.objects, hubRow)
	got := o.ask("probe", "eu")
	if got.code != 3 || !strings.HasPrefix(got.err, "Error: there is no target \"payments/eu\"\n"+
		"Name its namespace with -n; kubectl get clustertargets -A --kubeconfig DIR/hub.kubeconfig lists all that you may see") {
		t.Errorf("got %+v", got)
	}

	got = o.run("probe", "eu", "--hub", o.hub.URL, "--token-file", o.file("t", callerToken))
	if got.code != 2 || !strings.Contains(got.err, "the target's row is read at the hub's API server") {
		t.Errorf("got %+v", got)
	}
}

func TestRegisterWaitsForTheProbe(t *testing.T) {
	o := newOwner(t)
	o.probed(false, progress(registryv1alpha1.TargetProbing, false), progress(registryv1alpha1.TargetFailed, true, permissionFailed))
	row := o.hub.at(hubRow)
	o.hub.creating = func(at string, made object) {
		if at == hubRow {
			made["status"] = row["status"]
		}
	}
	delete(o.hub.objects, hubRow)
	got := o.register(o.kubeconfig(staticUser), "--wait")
	if got.code != 3 || !strings.HasPrefix(got.out, "Failed   Permissions: 1 of 9 is missing\n") || strings.Contains(got.err, "Next:") ||
		!strings.HasSuffix(got.err, "run `kubectl cellcast probe eu -n payments --kubeconfig DIR/hub.kubeconfig` again.\n") {
		t.Errorf("got %+v", got)
	}
}

var launchable = cellcastv1alpha1.LaunchTargetList{
	TypeMeta: metav1.TypeMeta{APIVersion: "cellcast.io/v1alpha1", Kind: "LaunchTargetList"},
	Items: []cellcastv1alpha1.LaunchTarget{
		{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}, Status: cellcastv1alpha1.LaunchTargetStatus{
			Kind: cellcastv1alpha1.LaunchTargetCluster, State: "LIVE", Launchable: true, Policies: []string{"payments"}, SecretRule: "any that you may get."}},
		{ObjectMeta: metav1.ObjectMeta{Name: "eu-2"}, Status: cellcastv1alpha1.LaunchTargetStatus{
			Kind: cellcastv1alpha1.LaunchTargetCluster, State: "DRAINING", Reason: "it takes nothing new", Policies: []string{"payments"}, SecretRule: "any that you may get."}},
		{ObjectMeta: metav1.ObjectMeta{Name: "target:1234"}, Status: cellcastv1alpha1.LaunchTargetStatus{
			Kind: cellcastv1alpha1.LaunchTargetClusterTarget, Target: &cellcastv1alpha1.LaunchTargetRow{Namespace: "payments", Name: "eu"}, State: "Ready", Launchable: true,
			Owner: "group:payments", Capabilities: []string{"AgentTurns", "Tokens"}, SecretRule: "only those that you or group:payments own.\x1b[2J"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "target:5678"}, Status: cellcastv1alpha1.LaunchTargetStatus{
			Kind: cellcastv1alpha1.LaunchTargetClusterTarget, Target: &cellcastv1alpha1.LaunchTargetRow{Namespace: "shop", Name: "us"}, State: "Failed",
			Owner: "user:jo", SecretRule: "only those that you or user:jo own."}},
	},
}

func TestTargetsShowsWhereOneMayLaunchAndWithWhichSecrets(t *testing.T) {
	o := newOwner(t)
	asked := ""
	o.hub.other = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path + " " + r.URL.Query().Get("fieldSelector")
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(launchable)
	})
	const rules = "\nSecrets on any Cluster: any that you may get.\n\nSecrets on ClusterTarget eu: only those that you or group:payments own. [2J\n\nSecrets on ClusterTarget us: only those that you or user:jo own.\n"
	diff(t, "the table", answerOf{0, `NAME   KIND            WHERE                STATE      LAUNCHABLE   OWNER
eu-1   Cluster         fleet                LIVE       yes          <none>
eu-2   Cluster         fleet                DRAINING   no           <none>
eu     ClusterTarget   namespace payments   Ready      yes          group:payments
us     ClusterTarget   namespace shop       Failed     no           user:jo
` + rules, ""}, o.ask("targets", "--playbook", "nightly", "--repository", "acme/shop"))
	if asked != "/apis/cellcast.io/v1alpha1/launchtargets playbook=nightly,repository=acme/shop" &&
		asked != "/apis/cellcast.io/v1alpha1/launchtargets repository=acme/shop,playbook=nightly" {
		t.Errorf("asked %q", asked)
	}
	wide := o.ask("targets", "-o", "wide").out
	for _, want := range []string{"target:1234", "AgentTurns,Tokens", "it takes nothing new"} {
		if !strings.Contains(wide, want) {
			t.Errorf("it lacks %q:\n%s", want, wide)
		}
	}
	var list cellcastv1alpha1.LaunchTargetList
	if err := json.Unmarshal([]byte(o.ask("targets", "-o", "json").out), &list); err != nil || list.Items[2].Kind != "LaunchTarget" {
		t.Errorf("%v: got %s", err, cmp.Diff(launchable, list))
	}
}

// The rule of a target names a namespace of that one.
func TestTheRuleOfASingleTargetIsNotThatOfAny(t *testing.T) {
	o := newOwner(t)
	o.hub.other = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		list := launchable
		list.Items = launchable.Items[:3]
		_ = json.NewEncoder(w).Encode(list)
	})
	if got := o.ask("targets"); !strings.HasSuffix(got.out, "\nSecrets on any Cluster: any that you may get.\n\nSecrets on ClusterTarget eu: only those that you or group:payments own. [2J\n") {
		t.Errorf("got %s", got.out)
	}
}

func TestAHubThatCantTakeAProbeIsUnavailable(t *testing.T) {
	o := newOwner(t)
	o.hub.other = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, refusal.New(refusal.MintUnavailable, "the trail took no record").Status())
	})
	diff(t, "the answer", answerOf{4, "", "Error: MintUnavailable: the trail took no record\nRetry; if it lasts, show the message to the platform team. The hub says to wait 10s.\n"},
		o.ask("probe", "eu", "--timeout", "5s"))
}
