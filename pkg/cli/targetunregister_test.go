package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestUnregisterTakesAwayWhatRegisterMadeAndSaysWhatRemains(t *testing.T) {
	o := newOwner(t)
	o.register(o.kubeconfig(staticUser), "--create-credential")
	o.hub.changed()
	got := o.ask("target", "unregister", "eu")
	diff(t, "the answer", answerOf{0, `On the target nothing was deleted. Unless you did, ServiceAccount cellcast-eu is still there in namespace shop, with its Roles and a token that works.
Where the file kubeconfig is your own for the target:
  kubectl --kubeconfig kubeconfig delete -n shop --ignore-not-found serviceaccount cellcast-eu
`, `Deleted ClusterTarget eu in namespace payments at the hub.
Deleted RoleBinding eu-kubeconfig in namespace payments at the hub.
Deleted Role eu-kubeconfig in namespace payments at the hub.
Deleted Secret eu-kubeconfig in namespace payments at the hub.
`}, answerOf{got.code, got.out[:strings.LastIndex(strings.TrimSpace(got.out), "\n")+1], got.err})
	for _, part := range []string{"NEEDED", "TOKENS", "QUEUE"} {
		if !strings.Contains(got.out, partNames(part)) {
			t.Errorf("it lacks %s:\n%s", partNames(part), got.out)
		}
	}
	diff(t, "the changes", []string{"delete " + hubRow, "delete " + hubBinding, "delete " + hubRole, "delete " + hubSecret}, o.hub.changed())
	if got := o.ask("target", "unregister", "eu"); got.code != 2 || !strings.Contains(got.err, "the hub has no target payments/eu, and nothing of one") {
		t.Errorf("got %+v", got)
	}
}

func TestUnregisterGoesOnWhereItStopped(t *testing.T) {
	o := newOwner(t)
	o.register(o.kubeconfig(staticUser))
	delete(o.hub.objects, hubRow)
	delete(o.hub.objects, hubBinding)
	got := o.ask("target", "unregister", "eu")
	if got.code != 0 || o.hub.paths() != nil || !strings.HasPrefix(got.out, "The token that was registered isn't revoked by this: delete its Secret") {
		t.Errorf("got %+v; left %v", got, o.hub.paths())
	}
}

func TestUnregisterLeavesWhatRegisterDidNotMake(t *testing.T) {
	o := newOwner(t)
	o.register(o.kubeconfig(staticUser))
	o.hub.at(hubSecret)["metadata"] = object{"name": "eu-kubeconfig", "uid": "theirs"}
	if got := o.ask("target", "unregister", "eu"); got.code != 0 || !strings.Contains(got.err, "Left Secret eu-kubeconfig in namespace payments: cellcast target register didn't make it.\n") {
		t.Errorf("got %+v", got)
	}
	diff(t, "what is left", []string{hubSecret}, o.hub.paths())

	o = newOwner(t)
	o.register(o.kubeconfig(staticUser))
	o.hub.at(hubRow)["metadata"] = object{"name": "eu", "namespace": "payments", "uid": "theirs"}
	before := o.hub.paths()
	diff(t, "the answer", answerOf{3, "", "Error: delete ClusterTarget eu in namespace payments at the hub: there is one that cellcast target register didn't make for this target: it's left as it is\n" +
		"Delete it where it's declared, or by hand; its Secret and the Role that lets the hub read it go the same way:\n  kubectl delete clustertarget eu -n payments --kubeconfig DIR/hub.kubeconfig\n"},
		o.ask("target", "unregister", "eu"))
	diff(t, "what is left", before, o.hub.paths())
}

// Until the hub has done its part it may need the credential.
func TestUnregisterWaitsForTheHub(t *testing.T) {
	for name, lets := range map[string]bool{"that does its part": true, "that isn't there": false} {
		t.Run(name, func(t *testing.T) {
			o := newOwner(t)
			o.register(o.kubeconfig(staticUser), "--vault-path", "users/jo/eu", "--write-kubeconfig", filepath.Join(o.dir, "closed"))
			waits := 0
			o.hub.sticky = hubRow
			o.sleep = func() {
				if waits++; waits == 3 && lets {
					o.hub.mu.Lock()
					delete(o.hub.objects, hubRow)
					o.hub.mu.Unlock()
				}
			}
			got := o.ask("target", "unregister", "eu")
			if got.code != 0 || strings.Contains(got.err, "Warning: the hub hasn't let go") == lets {
				t.Errorf("got %+v", got)
			}
			if lets && waits != 3 || !strings.HasPrefix(got.out, "The kubeconfig remains in Vault:\n  vault kv metadata delete -mount=MOUNT users/jo/eu\n") {
				t.Errorf("after %d waits: %+v", waits, got)
			}
		})
	}
}

// What is printed is to be pasted to a shell.
func TestUnregisterPrintsNoCommandOfAnAnnotationsMaking(t *testing.T) {
	o := newOwner(t)
	o.register(o.kubeconfig(staticUser))
	o.hub.at(hubSecret)["metadata"].(object)["annotations"].(object)["registry.cellcast.io/target-serviceaccount"] = "shop/x; rm -rf ~"
	if got := o.ask("target", "unregister", "eu"); strings.Contains(got.out, "rm -rf") {
		t.Errorf("got %s", got.out)
	}
}
